# Tasks without processes: the mock driver does what it is told. Good for a first look at how
# restarts, failures and sidecars show.
#
#   drover up examples/mock.nomad.hcl

job "mock" {
  type = "batch"

  group "demo" {
    count = 2

    restart {
      attempts = 1
      delay    = "500ms"
      interval = "1m"
      mode     = "fail"
    }

    task "good" {
      driver = "mock_driver"

      config {
        run_for       = "3s"
        stdout_string = "working\n"
        stdout_repeat = 2

        stdout_repeat_duration = "1s"
      }
    }

    task "slow-starter" {
      driver = "mock_driver"

      config {
        start_block_for = "1s"
        run_for         = "1s"
      }
    }
  }
}
