job "elsewhere" {
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "plan9"
  }

  group "g" {
    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
  }
}
