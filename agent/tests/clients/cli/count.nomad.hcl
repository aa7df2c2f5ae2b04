job "count" {
  type = "batch"

  group "numbers" {
    task "up" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "for n in 1 2 3; do echo line $n; done; echo last >&2"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
