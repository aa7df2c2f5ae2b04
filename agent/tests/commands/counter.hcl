job "counter" {
  type = "batch"

  group "count" {
    task "up" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "for n in 1 2 3; do echo $n; done; echo three >&2"]
      }
    }

    task "beside" {
      driver = "raw_exec"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo beside; sleep 1000"]
      }
    }
  }
}
