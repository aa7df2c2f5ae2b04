// A client of a cluster, as its operators keep it.
region     = "eu"
datacenter = "ams1"
name       = "worker-17"
data_dir   = "/opt/nomad/data"
plugin_dir = "/opt/nomad/plugins"
bind_addr  = "10.20.0.17"

log_level            = "WARN"
log_json             = true
log_file             = "/var/log/nomad/"
log_rotate_bytes     = 10485760
log_rotate_max_files = 5
enable_syslog        = false
leave_on_interrupt   = false
leave_on_terminate   = true
disable_update_check = true
enable_debug         = false

ports {
  http = 4646
  rpc  = 4647
  serf = 4648
}

addresses {
  http = "10.20.0.17"
  rpc  = "10.20.0.17"
}

advertise {
  http = "worker-17.ams1.example:4646"
  rpc  = "10.20.0.17:4647"
  serf = "10.20.0.17:4648"
}

http_api_response_headers {
  "Access-Control-Allow-Origin" = "*"
}

server {
  enabled = false
}

client {
  enabled           = true
  node_class        = "compute"
  node_pool         = "batch"
  no_host_uuid      = true
  max_kill_timeout  = "5m"
  network_interface = "bond0"
  network_speed     = 25000
  cpu_total_compute = 64000
  memory_total_mb   = 131072
  disk_total_mb     = 900000
  min_dynamic_port  = 21000
  max_dynamic_port  = 31000
  cgroup_parent     = "nomad.slice"

  cni_path                    = "/opt/cni/bin:/usr/libexec/cni"
  cni_config_dir              = "/etc/cni/net.d"
  bridge_network_name         = "nomad"
  bridge_network_subnet       = "172.27.64.0/20"
  bridge_network_hairpin_mode = true

  gc_interval              = "2m"
  gc_disk_usage_threshold  = 85
  gc_inode_usage_threshold = 80
  gc_max_allocs            = 100
  gc_parallel_destroys     = 4

  nomad_service_discovery = true
  preferred_address_family = "ipv4"

  server_join {
    retry_join     = ["10.20.0.1", "10.20.0.2:4647", "provider=aws tag_key=nomad tag_value=server"]
    retry_max      = 0
    retry_interval = "15s"
  }

  meta {
    owner         = "platform"
    rack          = 17
    spot          = false
    "gpu.present" = "no"
  }

  options {
    "driver.allowlist"                         = "docker,exec,raw_exec,java"
    "driver.raw_exec.enable"                   = "1"
    "user.denylist"                            = "root"
    "user.checked_drivers"                     = "exec"
    "fingerprint.network.disallow_link_local"  = "true"
    "docker.cleanup.image.delay"               = "1h"
  }

  chroot_env {
    "/bin"              = "/bin"
    "/etc/ssl/certs"    = "/etc/ssl/certs"
    "/lib"              = "/lib"
    "/usr"              = "/usr"
  }

  reserved {
    cpu            = 1000
    memory         = 2048
    disk           = 10240
    reserved_ports = "22,80,8500-8600"
  }

  host_volume "certificates" {
    path      = "/etc/ssl/certs"
    read_only = true
  }

  host_network "public" {
    cidr           = "203.0.113.0/24"
    reserved_ports = "22"
  }

  host_network "storage" {
    interface = "bond1"
  }

  artifact {
    http_read_timeout        = "10m"
    http_max_size            = "10GB"
    gcs_timeout              = "10m"
    decompression_size_limit = "20GB"
  }

  template {
    disable_file_sandbox = false
    function_denylist    = ["plugin", "writeToFile"]
    nomad_retry {
      attempts = 12
    }
  }

  drain_on_shutdown {
    deadline           = "10m"
    ignore_system_jobs = true
  }

  users {
    dynamic_user_min = 80000
    dynamic_user_max = 89999
  }

  fingerprint "env_aws" {
    retry_interval = "1m"
    retry_attempts = 3
  }
}

plugin "raw_exec" {
  config {
    enabled          = true
    denied_host_uids = "0"
  }
}

plugin "java" {
  config {
    default_pid_mode = "private"
  }
}

plugin "exec" {
  config {
    allow_caps = ["chown", "net_bind_service"]
  }
}

acl {
  enabled    = true
  token_ttl  = "1m"
  policy_ttl = "1m"
  role_ttl   = "1m"
}

tls {
  http                   = true
  rpc                    = true
  ca_file                = "/etc/nomad.d/ca.pem"
  cert_file              = "/etc/nomad.d/client.pem"
  key_file               = "/etc/nomad.d/client-key.pem"
  verify_server_hostname = true
  verify_https_client    = false
}

telemetry {
  collection_interval        = "10s"
  prometheus_metrics         = true
  publish_allocation_metrics = true
  publish_node_metrics       = true
  disable_hostname           = true
  statsd_address             = "127.0.0.1:8125"
  datadog_tags               = ["cluster:eu"]
}

consul {
  address             = "127.0.0.1:8500"
  auto_advertise      = true
  client_auto_join    = true
  client_service_name = "nomad-client"
}

vault {
  enabled = true
  address = "https://vault.example:8200"
}

limits {
  http_max_conns_per_client = 200
  rpc_handshake_timeout     = "5s"
}

audit {
  enabled = false
}

ui {
  enabled = false
}
