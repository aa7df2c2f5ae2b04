job "big" {
  group "g" {
    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }

      resources {
        cpu    = 20
        memory = 9000000
      }
    }
  }
}
