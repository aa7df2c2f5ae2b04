# All kinds of tasks around a main task: before it, beside it, after its start, after its end.
#
#   drover up examples/lifecycle.nomad.hcl

locals {
  shell = "/bin/sh"
}

job "lifecycle" {
  type = "batch"

  group "all" {
    # 1. Must succeed before anything else of the group starts.
    task "prepare" {
      driver = "raw_exec"

      lifecycle {
        hook = "prestart"
      }

      config {
        command = local.shell
        args    = ["-c", "echo preparing; echo ready > $NOMAD_ALLOC_DIR/data/ready"]
      }
    }

    # 2. Runs beside the main task, from before its start until after its end.
    task "proxy" {
      driver = "raw_exec"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      config {
        command = local.shell
        args    = ["-c", "trap 'echo proxy closes; exit 0' INT; echo proxy is up; sleep 1000 & wait"]
      }
    }

    # 3. The purpose of the group.
    task "main" {
      driver = "raw_exec"

      config {
        command = local.shell
        args    = ["-c", "echo main finds: $(cat $NOMAD_ALLOC_DIR/data/ready); sleep 2; echo main is done"]
      }
    }

    # 4. Runs once when the main task runs.
    task "announce" {
      driver = "raw_exec"

      lifecycle {
        hook = "poststart"
      }

      config {
        command = local.shell
        args    = ["-c", "echo $NOMAD_JOB_NAME is up as $NOMAD_ALLOC_NAME"]
      }
    }

    # 5. Runs when all others are over, also when the job is stopped.
    task "cleanup" {
      driver = "raw_exec"

      lifecycle {
        hook = "poststop"
      }

      config {
        command = local.shell
        args    = ["-c", "echo cleaning up; rm $NOMAD_ALLOC_DIR/data/ready"]
      }
    }
  }
}
