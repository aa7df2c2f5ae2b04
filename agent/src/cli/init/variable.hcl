# A variable to begin with: write it with "drover var put @FILE".

# Templates of a job "web" may read nomad/jobs and what is below nomad/jobs/web.
path      = "nomad/jobs/example"
namespace = "default"

items {
  user     = "ada"
  password = "change me"
}
