# A page that is rendered from a file, and rendered anew whenever that file changes. The reader is
# not started again for that: it is told by a signal.
#
#     drover up examples/template.nomad.hcl

job "page" {
  group "web" {
    # Writes another message every few seconds, where all tasks of the group find it.
    task "writer" {
      driver = "raw_exec"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          n=0
          while :; do
            n=$((n + 1))
            echo "{\"count\": $n, \"words\": [\"good\", \"news\"]}" > "$NOMAD_ALLOC_DIR/data/news.json"
            sleep 5
          done
        EOT
        ]
      }
    }

    task "reader" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          show() { echo "in $COLOR: $(cat local/page.html)"; }
          trap show HUP
          show
          while :; do sleep 3600 & wait $!; done
        EOT
        ]
      }

      # Each line of this file becomes a variable of the task.
      template {
        destination = "secrets/colors.env"
        env         = true
        data        = <<-EOT
          COLOR={{ env "NOMAD_META_color" | toUpper }}
        EOT
      }

      # The task starts when this can be rendered. Splay spreads what follows a change over time; a
      # single reader needs none.
      template {
        destination   = "local/page.html"
        change_mode   = "signal"
        change_signal = "SIGHUP"
        splay         = "0s"
        data          = <<-EOT
          {{- with file (printf "%s/data/news.json" (env "NOMAD_ALLOC_DIR")) | parseJSON -}}
          <h1>{{ .words | join " " | toTitle }}, number {{ .count }}</h1>
          {{- end }}
        EOT
      }

      meta {
        color = "blue"
      }
    }
  }
}
