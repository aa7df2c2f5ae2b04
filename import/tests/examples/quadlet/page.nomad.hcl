# Made from page.container by `drover job import`. What is not carried over, or not quite the same,
# is said in comments: read them before you run it.
#
# Description: A page

job "page" {
  type = "service"

  group "page" {
    restart {
      attempts = 4
      interval = "10s"
      delay    = "100ms"
      mode     = "fail"
    }

    # Not carried over (line 3): After=db.service: of what is a job here, too, a task waits with
    # `wait_for { service = "NAME" }` (docs/checks.md); units of systemd that the machine needs are
    # there when the agent is.
    # Not carried over (line 45): WantedBy=default.target: jobs that were submitted are started by
    # the agent, also after a restart of the machine.

    network {
      # Line 11: published at 127.0.0.1 only, which the agent's configuration has to know:
      #   client {
      #     host_network "loopback" {
      #       cidr = "127.0.0.1/32"
      #     }
      #   }
      port "p80" {
        static       = 8080
        to           = 80
        host_network = "loopback"
      }

      port "p443" {
        static = 8443
        to     = 443
      }
    }

    # The volume content (line 13) becomes a host volume, which the job waits for. Make it once with
    # `drover volume create FILE`, where FILE has
    #   name      = "content"
    #   type      = "host"
    #   plugin_id = "mkdir"
    # It is empty then: what the engine's volume holds has to be copied.
    volume "content" {
      type   = "host"
      source = "content"
    }

    task "page" {
      driver       = "docker"
      user         = "1000"
      kill_timeout = "20s"

      # Not carried over (line 41): TimeoutStartSec=900: a deployment that takes too long fails by
      # its progress_deadline.

      config {
        image           = "quay.io/example/page:2"
        args            = ["serve", "--title", "My page"]
        readonly_rootfs = true
        # ContainerName (line 7): the engine gives containers other names here; it is known by this
        # one in a network of the engine.
        # Network (line 18): the network has to be there: `docker network create pages`.
        network_mode    = "pages"
        network_aliases = ["page"]
        # The agent allows more than the usual ones with allow_caps (docs/docker.md).
        cap_add      = ["net_admin"]
        cap_drop     = ["all"]
        security_opt = ["no-new-privileges"]
        sysctl = {
          "net.core.somaxconn" = "1024"
        }
        ulimit = {
          "nofile" = "1024:2048"
        }
        labels = {
          "org.example.team" = "web"
        }

        logging {
          type = "journald"
        }

        # Not carried over (line 33): AutoUpdate=registry: write force_pull, and submit the job
        # again.
        # Not carried over (line 34): PodmanArgs=--cpus=2: see the options of the driver
        # (docs/docker.md).
        # Not carried over (line 35): PodmanArgs=--blkio-weight=300: see the options of the driver
        # (docs/docker.md).

        ports = ["p80", "p443"]
        # Absolute paths are the host's, which the agent's configuration has to allow:
        # `enabled = true` in `volumes` of its block for docker (docs/docker.md). Relative ones are
        # below the task's own directory and need nothing.
        volumes = [
          "/etc/ssl:/etc/ssl:ro",
          "/srv/quadlet/conf:/conf",
          "secrets/cert-1:/etc/cert.pem:ro",
        ]

        # Not carried over (line 15): mode "U" of a volume: ro, rw, z and Z are carried over.

        mount {
          type   = "tmpfs"
          target = "/scratch"

          tmpfs_options {
            size = 8388608
          }
        }

        mount {
          type   = "tmpfs"
          target = "/run"

          tmpfs_options {
            size = 16777216
          }
        }
      }

      env {
        MODE  = "live"
        TITLE = "two words"
        TZ    = "Europe/Berlin"
      }

      resources {
        memory = 256
      }

      volume_mount {
        volume      = "content"
        destination = "/srv/content"
      }

      # The file of variables of line 10, as it is when the job is submitted. It becomes a part of
      # the job; for secrets see `drover var put`.
      template {
        data            = file("/srv/quadlet/page.env")
        destination     = "secrets/variables-10.env"
        left_delimiter  = "[[[["
        right_delimiter = "]]]]"
        env             = true
      }

      # api-key (line 20): the task waits until its value is there. Several items of a job are given
      # in one command.
      #   drover var put nomad/jobs/page api_key=-
      template {
        data        = "API_KEY={{ with nomadVar \"nomad/jobs/page\" }}{{ .api_key | toJSON }}{{ end }}"
        destination = "secrets/api_key-0"
        env         = true
      }

      # Not carried over (line 21): option mode=0400 of a secret: say perms, uid and gid in the
      # template.

      # cert (line 21): the task waits until its value is there. Several items of a job are given in
      # one command.
      #   drover var put nomad/jobs/page cert=-
      template {
        data        = "{{ with nomadVar \"nomad/jobs/page\" }}{{ .cert }}{{ end }}"
        destination = "secrets/cert-1"
      }

      service {
        name     = "page"
        port     = "p80"
        provider = "nomad"

        check {
          name     = "healthy"
          type     = "script"
          command  = "/bin/sh"
          args     = ["-c", "curl -fs http://127.0.0.1/ || exit 1"]
          interval = "15s"
          timeout  = "30s"

          # An unhealthy container is marked and runs on, as it did. This would restart it:
          #   check_restart {
          #     limit = 4
          #   }
        }
      }
    }
  }
}
