# Sees everything but what tasks write (logs, files) and what is secret (contents of variables).
namespace "*" {
  policy = "read"
}

node {
  policy = "read"
}

node_pool "*" {
  policy = "read"
}

agent {
  policy = "read"
}

operator {
  policy = "read"
}

plugin {
  policy = "read"
}

host_volume "*" {
  policy = "read"
}
