# A small web site: a server, and a sidecar that ships the server's log.
#
#   drover up examples/web.nomad.hcl
job "web" {
  datacenters = ["dc1"]

  group "app" {
    network {
      port "http" {}
    }

    # The page's server. It is the leader: when it ends, the sidecar is stopped after it.
    task "server" {
      driver = "raw_exec"
      leader = true

      config {
        command = "/bin/sh"
        args    = ["-c", "trap \"echo bye; exit 0\" INT; echo hello on $NOMAD_PORT_http; i=0; while true; do i=$((i+1)); echo request $i; sleep 1 & wait; done"]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
