job "everywhere" {
  type = "system"

  group "g" {
    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
