# Made from compose.yml by `drover job import`. What is not carried over, or not quite the same, is
# said in comments: read them before you run it.
#
# The services reach each other by their names in a network of the engine, which has to be there:
#   docker network create shop_default
# It does not leave the machine. To reach a service from elsewhere, give it a port, and write a
# template with
#   {{ range nomadService "shop-NAME" }}{{ .Address }}:{{ .Port }}{{ end }}

# Line 15: it must be given, with -var DB_PASSWORD=… or NOMAD_VAR_DB_PASSWORD: the password of the
# database.
variable "DB_PASSWORD" {
  type = string
}

# Line 13. Another value is given with -var SHOP_PORT=… or NOMAD_VAR_SHOP_PORT.
variable "SHOP_PORT" {
  type    = number
  default = 8080
}

# Line 11. Another value is given with -var SHOP_VERSION=… or NOMAD_VAR_SHOP_VERSION.
variable "SHOP_VERSION" {
  type    = string
  default = "1.4"
}

# The directory of the compose file, which relative paths in it are below.
variable "project_dir" {
  type    = string
  default = "/srv/shop"
}

job "shop" {
  type = "service"

  # Not carried over (line 2): x-usual: an extension, which by itself means nothing to compose; what
  # it anchors is put in where it is used.

  group "web" {
    restart {
      attempts = 10
      interval = "1m"
      delay    = "5s"
      mode     = "delay"
    }

    network {
      port "p80" {
        static = var.SHOP_PORT
        to     = 80
      }
    }

    task "migrate" {
      driver       = "docker"
      kill_timeout = "10s"

      lifecycle {
        hook = "prestart"
      }

      wait_for {
        service = "shop-db"
      }

      config {
        image           = "ghcr.io/example/shop:${var.SHOP_VERSION}"
        args            = ["shop", "migrate", "--to", "latest"]
        network_mode    = "shop_default"
        network_aliases = ["migrate"]
      }

      env {
        DATABASE_URL = "postgres://shop:${var.DB_PASSWORD}@db:5432/shop"
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }
    }

    task "web" {
      driver       = "docker"
      kill_timeout = "10s"

      wait_for {
        service = "shop-db"
      }

      config {
        image           = "ghcr.io/example/shop:${var.SHOP_VERSION}"
        network_mode    = "shop_default"
        network_aliases = ["web"]

        logging {
          type = "json-file"
          config = {
            "max-size" = "5m"
          }
        }

        ports = ["p80"]
        # Absolute paths are the host's, which the agent's configuration has to allow:
        # `enabled = true` in `volumes` of its block for docker (docs/docker.md). Relative ones are
        # below the task's own directory and need nothing.
        volumes = ["${var.project_dir}/theme:/srv/theme:ro"]
      }

      env {
        DATABASE_URL = "postgres://shop:${var.DB_PASSWORD}@db:5432/shop"
        GREETING     = "It costs $5"
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }

      # healthcheck (line 25): compose only marks a container that is unhealthy; check_restart
      # restarts it.
      service {
        name     = "shop-web"
        port     = "p80"
        provider = "nomad"

        check {
          name     = "healthy"
          type     = "script"
          command  = "wget"
          args     = ["-q", "--spider", "http://127.0.0.1/"]
          interval = "10s"
          timeout  = "2s"

          check_restart {
            limit = 5
            grace = "20s"
          }
        }
      }
    }
  }

  group "db" {
    restart {
      attempts = 10
      interval = "1m"
      delay    = "5s"
      mode     = "delay"
    }

    # The volume data (line 48) becomes a host volume, which the job waits for. Make it once with
    # `drover volume create FILE`, where FILE has
    #   name      = "shop-data"
    #   type      = "host"
    #   plugin_id = "mkdir"
    # It is empty then: what the engine's volume holds has to be copied.
    volume "data" {
      type   = "host"
      source = "shop-data"
    }

    task "db" {
      driver = "docker"
      # kill_timeout (line 54): an agent gives a task 30 s at most, unless its configuration says
      # max_kill_timeout.
      kill_timeout = "1m"

      config {
        image           = "postgres:16"
        network_mode    = "shop_default"
        network_aliases = ["db"]
        shm_size        = 134217728

        logging {
          type = "json-file"
          config = {
            "max-size" = "5m"
          }
        }
      }

      env {
        POSTGRES_USER     = "shop"
        POSTGRES_PASSWORD = var.DB_PASSWORD
      }

      resources {
        memory = 512
      }

      volume_mount {
        volume      = "data"
        destination = "/var/lib/postgresql/data"
      }

      service {
        name     = "shop-db"
        provider = "nomad"

        check {
          name     = "healthy"
          type     = "script"
          command  = "/bin/sh"
          args     = ["-c", "(pg_isready -U shop) || exit 2"]
          interval = "5s"
          timeout  = "30s"

          # An unhealthy container is marked and runs on, as it did. This would restart it:
          #   check_restart {
          #     limit = 3
          #   }
        }
      }
    }
  }
}
