node_pool "nightly" {
  description = "for the night"

  meta {
    owner = "somebody"
  }
}
