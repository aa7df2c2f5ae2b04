# A task whose program is fetched before its start: an archive, unpacked into the task's `local`.
#
#   mkdir -p /tmp/files/hello/bin && cd /tmp/files
#   printf '#!/bin/sh\necho "hello from $0"\n' > hello/bin/hello && chmod +x hello/bin/hello
#   tar czf hello.tar.gz -C hello . && python3 -m http.server 8000 &
#   drover up examples/artifact.nomad.hcl

variable "url" {
  default = "http://127.0.0.1:8000/hello.tar.gz"
}

job "artifact" {
  type = "batch"

  group "hello" {
    task "hello" {
      driver = "raw_exec"

      config {
        command = "local/app/bin/hello"
      }

      artifact {
        source      = var.url
        destination = "local/app"

        # With a checksum, nothing else is accepted, and what is the same is fetched once a node:
        #   options { checksum = "sha256:…" }
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
