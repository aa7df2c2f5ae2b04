# Visits are counted in a file on a host volume, which outlives the job. The agent's configuration names the
# volume, or "drover volume create" makes it (docs/volumes.md):
#
#     client {
#       host_volume "visits" { path = "/srv/visits" }
#     }

job "visits" {
  type = "batch"

  group "app" {
    volume "visits" {
      type   = "host"
      source = "visits"
    }

    task "count" {
      driver = "raw_exec"

      volume_mount {
        volume      = "visits"
        destination = "/data" # a link in the task's directory, where it starts
      }

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          n=$(($(cat data/count 2>/dev/null || echo 0) + 1))
          echo "$n" > data/count
          echo "visit $n, counted in $NOMAD_VOLUME_visits"
        EOT
        ]
      }
    }
  }
}
