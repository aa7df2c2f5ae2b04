# Runs jobs in all namespaces, with logs, files and exec of their tasks, and sees the node.
namespace "*" {
  policy = "write"
}

node {
  policy = "read"
}

node_pool "*" {
  policy = "read"
}

host_volume "*" {
  policy = "write"
}
