client {
  host_volume "shared" {
    path = "DIR/shared"
  }
}
