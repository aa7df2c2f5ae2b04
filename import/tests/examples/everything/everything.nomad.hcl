# Made from compose.yml by `drover job import`. What is not carried over, or not quite the same, is
# said in comments: read them before you run it.
#
# The services reach each other by their names in a network of the engine, which has to be there:
#   docker network create everything_default
# It does not leave the machine. To reach a service from elsewhere, give it a port, and write a
# template with
#   {{ range nomadService "everything-NAME" }}{{ .Address }}:{{ .Port }}{{ end }}

# Line 157. Another value is given with -var COPIES=… or NOMAD_VAR_COPIES.
variable "COPIES" {
  type    = string
  default = "1"
}

# Line 32 gives no default: it is empty unless it is given, with -var FROM_OUTSIDE=… or
# NOMAD_VAR_FROM_OUTSIDE. Compose takes what its environment or .env says.
variable "FROM_OUTSIDE" {
  type    = string
  default = ""
}

# Line 36. Another value is given with -var LOG_DIR=… or NOMAD_VAR_LOG_DIR.
variable "LOG_DIR" {
  type    = string
  default = "/var/log"
}

# Line 171 gives no default: it is empty unless it is given, with -var OPTION=… or NOMAD_VAR_OPTION.
# Compose takes what its environment or .env says.
variable "OPTION" {
  type    = string
  default = ""
}

# Line 28 gives no default: it is empty unless it is given, with -var PORT=… or NOMAD_VAR_PORT.
# Compose takes what its environment or .env says.
variable "PORT" {
  type    = string
  default = ""
}

# Line 155. Another value is given with -var REDIS=… or NOMAD_VAR_REDIS.
variable "REDIS" {
  type    = string
  default = "7"
}

# The home directory that ~ stood for.
variable "home_dir" {
  type    = string
  default = "/root"
}

# The directory of the compose file, which relative paths in it are below.
variable "project_dir" {
  type    = string
  default = "/srv/everything"
}

job "everything" {
  type = "service"

  # Not carried over (line 180): networks.front.driver: give it to `docker network create`.
  # Not carried over (line 180): networks.front.internal: give it to `docker network create`.
  # Not carried over (line 180): the networks back, default, front: a task is in one network of the
  # engine; all services are in the same one here, so those that were kept apart reach each other.
  # Not carried over (line 175): volumes.cache.driver: a host volume is a directory of the node:
  # mount there what the driver mounted.
  # Not carried over (line 176): volumes.cache.driver_opts: a host volume is a directory of the
  # node: mount there what the options mounted.
  # Not carried over (line 177): volumes.cache.labels: host volumes have nothing like it.
  # Not carried over (line 1): version: it has had no meaning for years.
  # Not carried over (line 4): x-env: an extension, which by itself means nothing to compose; what
  # it anchors is put in where it is used.
  # Not carried over (line 191): include: import each of these files by itself.

  group "base" {
    # profiles (line 13): started only with the profile tools; set count to 1 to run it.
    count = 0

    # no restart (line 11): compose leaves it when it has ended; here it is started again, unless
    # there is `restart { attempts = 0 }` with `mode = "fail"`.

    task "base" {
      driver       = "docker"
      kill_timeout = "10s"

      config {
        image           = "example/base:1"
        network_mode    = "everything_default"
        network_aliases = ["base"]
        labels = {
          "org.example.team" = "core"
        }
      }

      env {
        LOG_LEVEL = "info"
        RETRIES   = "3"
        RATIO     = "0.5"
        DEBUG     = "false"
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }
    }
  }

  group "app" {
    # profiles (line 21): started only with the profile tools; set count to 2 to run it.
    count = 0

    restart {
      attempts = 4
      interval = "2m"
      delay    = "2s"
      mode     = "fail"
    }

    update {
      max_parallel     = 1
      min_healthy_time = "20s"
      auto_revert      = true

      # Not carried over (line 101): deploy.update_config.delay: the next copy is replaced when the
      # one before is healthy for min_healthy_time.
      # Not carried over (line 102): deploy.update_config.order: copies are replaced one after the
      # other; with canaries new ones run beside the old.
      # Not carried over (line 104): deploy.update_config.max_failure_ratio: see
      # docs/deployments.md.
    }

    # Not carried over (line 90): deploy.labels: give the service tags.
    # Not carried over (line 91): deploy.placement: write constraint blocks (docs/jobs.md).
    # Not carried over (line 105): deploy.rollback_config: a deployment that fails goes back as it
    # went forward, with auto_revert of update.

    network {
      port "p80" {
        to = 80
      }

      # Line 44: published at 127.0.0.1 only, which the agent's configuration has to know:
      #   client {
      #     host_network "loopback" {
      #       cidr = "127.0.0.1/32"
      #     }
      #   }
      port "p8443" {
        static       = 8443
        to           = 8443
        host_network = "loopback"
      }

      port "p7000" {
        static = 7000
        to     = 7000
      }

      port "p7001" {
        static = 7001
        to     = 7001
      }

      port "p7002" {
        static = 7002
        to     = 7002
      }

      # Line 46: of UDP; here both TCP and UDP are published.
      port "p53" {
        static = 5353
        to     = 53
      }

      # Line 47: published at ::1 only, which the agent's configuration has to know:
      #   client {
      #     host_network "loopback6" {
      #       cidr = "::1/128"
      #     }
      #   }
      port "p6060" {
        static       = 6060
        to           = 6060
        host_network = "loopback6"
      }

      # Line 48: any port from 8000 to 8010 was asked for; here it is any that is free.
      port "p9001" {
        to = 9001
      }

      port "p9000" {
        static = 9000
        to     = 9000
      }

      # Not carried over (line 52): mode of a port: ports of a group have nothing like it.
    }

    # The volume cache (line 55) becomes a host volume, which the job waits for. Make it once with
    # `drover volume create FILE`, where FILE has
    #   name      = "everything-cache"
    #   type      = "host"
    #   plugin_id = "mkdir"
    # It is empty then: what the engine's volume holds has to be copied.
    volume "cache" {
      type   = "host"
      source = "everything-cache"
    }

    # The volume shared (line 56) becomes a host volume, which the job waits for. Make it once with
    # `drover volume create FILE`, where FILE has
    #   name      = "company-files"
    #   type      = "host"
    #   plugin_id = "mkdir"
    # It is empty then: what the engine's volume holds has to be copied.
    volume "shared" {
      type   = "host"
      source = "company-files"
    }

    task "app" {
      driver = "docker"

      # Not carried over (line 79): restart of depends_on: a service that restarts does not restart
      # others; see `drover job restart`.

      user = "1000:1000"
      # kill_timeout (line 122): an agent gives a task 30 s at most, unless its configuration says
      # max_kill_timeout.
      kill_timeout = "90s"
      kill_signal  = "SIGINT"

      wait_for {
        service = "everything-queue"
      }

      config {
        # Not carried over (line 23): build: images are not built here; `docker compose build` makes
        # it, with this name.

        image           = "example/base:1"
        force_pull      = true
        entrypoint      = ["/bin/entry", "--quiet"]
        args            = ["serve", "--name", "two words", "--port", var.PORT]
        work_dir        = "/srv"
        hostname        = "app"
        init            = true
        tty             = true
        interactive     = true
        readonly_rootfs = true
        # privileged (line 108): the agent's configuration has to allow it:
        # `allow_privileged = true` in its block for docker.
        privileged = true
        # container_name (line 24): the engine gives containers other names here; it is known by
        # this one in the network.
        network_mode    = "everything_default"
        network_aliases = ["app", "the-app", "shop"]
        ipv4_address    = "10.5.0.5"

        # Not carried over (line 144): networks.front.priority: the driver has nothing like it.

        dns_servers        = ["10.0.0.53"]
        dns_search_domains = ["example.org"]
        group_add          = ["20"]
        security_opt       = ["no-new-privileges:true"]
        extra_hosts        = ["host.docker.internal:host-gateway", "other:10.0.0.9"]
        labels = {
          "org.example.team" = "core"
        }
        # cap_add (line 106): the agent allows more than the usual ones with allow_caps
        # (docs/docker.md).
        cap_add  = ["net_admin", "sys_ptrace"]
        cap_drop = ["all"]

        devices {
          host_path          = "/dev/ttyUSB0"
          container_path     = "/dev/tty0"
          cgroup_permissions = "rw"
        }

        # Not carried over (line 111): device "vendor.example/class=thing": a device by a vendor's
        # name is asked for with a block `device "NAME" {}` in resources.

        # pid (line 131): the agent has to allow it (docs/docker.md, settings of the agent).
        pid_mode = "host"

        # Not carried over (line 132): ipc: a task has nothing of another container.

        shm_size = 67108864
        sysctl = {
          "net.core.somaxconn" = "1024"
        }
        ulimit = {
          "nproc"  = "65535"
          "nofile" = "20000:40000"
        }

        logging {
          type = "journald"
          config = {
            "tag" = "app"
          }
        }

        cpuset_cpus    = "0,1"
        pids_limit     = 200
        cpu_hard_limit = true

        # Not carried over (line 26): platform: the engine takes the image for its own platform.
        # Not carried over (line 146): links: services know each other by their names in the network
        # of the engine.
        # Not carried over (line 147): blkio_config: see io of the driver, which limits one disk and
        # has no weights.
        # Not carried over (line 148): gpus: ask for it with a block `device "nvidia/gpu" {}` in
        # resources.
        # Not carried over (line 149): annotations: labels are carried over.
        # Not carried over (line 150): develop: it is for working on the image.
        # Not carried over (line 151): x-note: an extension, which by itself means nothing to
        # compose; what it anchors is put in where it is used.
        # Not carried over (line 152): nonsense: this is not known here.

        ports = ["p80", "p8443", "p7000", "p7001", "p7002", "p53", "p6060", "p9001", "p9000"]
        # Absolute paths are the host's, which the agent's configuration has to allow:
        # `enabled = true` in `volumes` of its block for docker (docs/docker.md). Relative ones are
        # below the task's own directory and need nothing.
        volumes = [
          "/etc/localtime:/etc/localtime:ro",
          "${var.home_dir}/keys:/keys",
          "${var.project_dir}/conf:/etc/app:ro",
          "secrets/api_key-3:/run/secrets/api_key:ro",
          "secrets/tls_pem-4:/etc/tls.pem:ro",
          "local/inline-5:/inline:ro",
          "local/page-6:/etc/page.conf:ro",
        ]

        mount {
          type   = "volume"
          target = "/var/lib/nameless"
        }

        # Not carried over (line 64): bind.propagation of a volume: see the mount block of the
        # driver (docs/docker.md).
        # Not carried over (line 68): volume of a volume: see the mount block of the driver
        # (docs/docker.md).

        mount {
          type   = "tmpfs"
          target = "/scratch"

          tmpfs_options {
            size = 67108864
            mode = 1777
          }
        }

        # Not carried over (line 72): a volume of type "npipe": bind (with a source), volume and
        # tmpfs are carried over.

        mount {
          type   = "tmpfs"
          target = "/run"
        }

        # Not carried over (line 75): option noexec of tmpfs: the driver knows size and mode.

        mount {
          type   = "tmpfs"
          target = "/tmp"

          tmpfs_options {
            size = 16777216
            mode = 1023
          }
        }
      }

      env = {
        "PORT"         = "9000"
        "FROM_OUTSIDE" = var.FROM_OUTSIDE
        "with.dots"    = "yes"
        "SCRIPT"       = "first line\nsecond line with ${var.LOG_DIR}\n"
        "LOG_LEVEL"    = "info"
        "RETRIES"      = "3"
        "RATIO"        = "0.5"
        "DEBUG"        = "false"
      }

      resources {
        # Not carried over (line 96): deploy.resources.reservations.devices: ask for it with a block
        # `device "nvidia/gpu" {}` in resources.

        # cpus (line 93): cpu counts MHz. A core is taken for 1000 of them here:
        # `drover node status -self` says how many it has.
        cpu        = 1500
        memory     = 256
        memory_max = 1024
      }

      volume_mount {
        volume      = "cache"
        destination = "/var/cache/app"
      }

      volume_mount {
        volume      = "shared"
        destination = "/shared"
        read_only   = true
      }

      volume_mount {
        volume      = "cache"
        destination = "/var/tmp/cache"
      }

      # The file of variables of line 39, as it is when the job is submitted. It becomes a part of
      # the job; for secrets see `drover var put`. What it says goes before env, which with compose
      # is the other way round.
      template {
        data            = file("${var.project_dir}/app.env")
        destination     = "secrets/variables-0.env"
        left_delimiter  = "[[[["
        right_delimiter = "]]]]"
        env             = true
      }

      # The file of variables of line 40, as it is when the job is submitted. It becomes a part of
      # the job; for secrets see `drover var put`. What it says goes before env, which with compose
      # is the other way round.
      template {
        data            = fileexists("${var.project_dir}/local.env") ? file("${var.project_dir}/local.env") : "# not there\n"
        destination     = "secrets/variables-1.env"
        left_delimiter  = "[[[["
        right_delimiter = "]]]]"
        env             = true
      }

      # api_key (line 183): the task waits until its value is there. Several items of a job are
      # given in one command.
      #   drover var put nomad/jobs/everything api_key="$API_KEY"
      template {
        data        = "{{ with nomadVar \"nomad/jobs/everything\" }}{{ .api_key }}{{ end }}"
        destination = "secrets/api_key-3"
      }

      # Not carried over (line 138): mode of secrets: say perms, uid and gid in the template.

      # tls.pem (line 184): the task waits until its value is there. Several items of a job are
      # given in one command.
      #   drover var put nomad/jobs/everything tls_pem=@./tls.pem
      template {
        data        = "{{ with nomadVar \"nomad/jobs/everything\" }}{{ .tls_pem }}{{ end }}"
        destination = "secrets/tls_pem-4"
      }

      template {
        data            = <<EOT
level = {{ .Level }}
percent = %%{x}
EOT
        destination     = "local/inline-5"
        left_delimiter  = "[[[["
        right_delimiter = "]]]]"
      }

      template {
        data            = file("${var.project_dir}/page.conf")
        destination     = "local/page-6"
        left_delimiter  = "[[[["
        right_delimiter = "]]]]"
      }

      # Not carried over (line 86): healthcheck.start_interval: checks have nothing like it.

      service {
        name     = "everything-app"
        port     = "p80"
        provider = "nomad"

        check {
          name     = "healthy"
          type     = "script"
          command  = "/bin/sh"
          args     = ["-c", "curl -fs localhost:9000 || exit 1"]
          interval = "90s"
          timeout  = "30s"

          # An unhealthy container is marked and runs on, as it did. This would restart it:
          #   check_restart {
          #     limit = 3
          #   }
        }
      }
    }
  }

  group "queue" {
    count = 1

    restart {
      attempts = 3
      interval = "24h"
      delay    = "5s"
      mode     = "fail"
    }

    task "queue" {
      driver       = "docker"
      kill_timeout = "10s"

      # scale (line 157): it is read with the default of COPIES; whoever gives another value must
      # change it here, too.

      config {
        image           = "redis:${var.REDIS}"
        network_mode    = "everything_default"
        network_aliases = ["queue"]

        healthchecks {
          disable = true
        }
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }

      service {
        name     = "everything-queue"
        provider = "nomad"
      }
    }
  }

  group "lone" {
    # no restart (line 161): compose leaves it when it has ended; here it is started again, unless
    # there is `restart { attempts = 0 }` with `mode = "fail"`.

    task "lone" {
      driver       = "docker"
      kill_timeout = "10s"

      config {
        image = "example/lone"

        # Not carried over (line 163): network_mode "service:app": a task cannot be in another one's
        # network; what has to share 127.0.0.1 would be one image, or tasks of the driver exec in
        # one group with a bridge (docs/networks.md).
        # Not carried over (line 164): healthcheck.interval: the image's own check cannot be
        # changed.
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }
    }
  }

  group "plain" {
    restart {
      attempts = 10
      interval = "1m"
      delay    = "5s"
      mode     = "delay"
    }

    task "plain" {
      driver       = "docker"
      kill_timeout = "10s"

      config {
        image        = "example/plain"
        network_mode = "host"
      }

      env {
        OPTION = "${var.OPTION != "" ? "on" : ""}"
        EMPTY  = ""
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }

      # The file of variables of line 170, as it is when the job is submitted. It becomes a part of
      # the job; for secrets see `drover var put`. What it says goes before env, which with compose
      # is the other way round.
      template {
        data            = file("${var.project_dir}/plain.env")
        destination     = "secrets/variables-0.env"
        left_delimiter  = "[[[["
        right_delimiter = "]]]]"
        env             = true
      }
    }
  }
}
