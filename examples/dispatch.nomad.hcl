# A job that runs nothing until somebody dispatches it, each time with a text of its own.
#
#     drover up examples/dispatch.nomad.hcl
#
# and in another terminal, at the address that it says:
#
#     echo "good news" | drover job dispatch -meta to=everybody letter -
#     drover job status letter

job "letter" {
  type = "batch"

  parameterized {
    payload       = "required"
    meta_required = ["to"]
    meta_optional = ["from"]
  }

  group "post" {
    task "deliver" {
      driver = "raw_exec"

      # What the dispatch brings is in local/letter.txt before the task starts.
      dispatch_payload {
        file = "letter.txt"
      }

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          from=$NOMAD_META_FROM
          test -n "$from" || from=nobody
          echo "to $NOMAD_META_TO from $from:"
          cat local/letter.txt
          echo "this was $NOMAD_JOB_ID"
        EOT
        ]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
