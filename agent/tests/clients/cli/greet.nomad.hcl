job "greet" {
  type = "batch"

  parameterized {
    payload       = "optional"
    meta_required = ["who"]
    meta_optional = ["how"]
  }

  group "g" {
    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo hello $NOMAD_META_who; cat $NOMAD_TASK_DIR/letter"]
      }

      dispatch_payload {
        file = "letter"
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
