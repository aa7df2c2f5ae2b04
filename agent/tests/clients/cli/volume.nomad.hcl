job "keeper" {
  group "g" {
    volume "data" {
      type   = "host"
      source = "shared"
    }

    task "t" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
