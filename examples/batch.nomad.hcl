# A batch job that fails twice, is started again by its restart policy, and then succeeds.
#
#   drover up examples/batch.nomad.hcl

job "batch" {
  type = "batch"

  group "work" {
    restart {
      attempts = 3
      interval = "5m"
      delay    = "1s"
      mode     = "fail"
    }

    task "convert" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          tries="$NOMAD_ALLOC_DIR/data/tries"
          n=$(cat "$tries" 2>/dev/null || echo 0)
          n=$((n + 1))
          echo "$n" > "$tries"
          echo "try $n"
          if [ "$n" -lt 3 ]; then
            echo "the input is not there yet" >&2
            exit 1
          fi
          for part in 1 2 3 4 5; do
            echo "part $part of 5"
            sleep 0.2
          done
          echo "done"
        EOT
        ]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
