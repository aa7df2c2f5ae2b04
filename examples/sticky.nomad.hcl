# A task that counts in a file, and goes on counting: its disk is sticky, so what replaces it takes the
# disk over. Run it, change TITLE, and submit it again to the same agent:
#
#     drover up examples/sticky.nomad.hcl
#     drover job run -var title=second examples/sticky.nomad.hcl

variable "title" {
  default = "first"
}

job "counter" {
  group "app" {
    ephemeral_disk {
      sticky = true
    }

    task "count" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          n=$(cat "$NOMAD_ALLOC_DIR/data/count" 2>/dev/null || echo 0)
          while :; do
            n=$((n + 1))
            echo "$n" > "$NOMAD_ALLOC_DIR/data/new" && mv "$NOMAD_ALLOC_DIR/data/new" "$NOMAD_ALLOC_DIR/data/count"
            echo "$TITLE: $n"
            sleep 1
          done
        EOT
        ]
      }

      env {
        TITLE = var.title
      }
    }
  }
}
