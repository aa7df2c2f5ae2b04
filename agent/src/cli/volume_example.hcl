# A host volume: a directory of this node that jobs use by its name.
#
#     drover volume create volume.hcl      makes the directory
#     drover volume register volume.hcl    takes one that is there: see host_path
#
# In a job: volume "NAME" { type = "host", source = "example" }.

name = "example"
type = "host"

# What makes the directory. Not for "volume register".
plugin_id = "mkdir"

# Its permissions and its owner; "0700" and the agent's user unless given.
parameters {
  mode = "0755"
  # uid = "1000"
  # gid = "1000"
}

# How it may be used; a volume whose only access mode is single-node-reader-only is for groups that
# say read_only = true.
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

# For "volume register", instead of plugin_id and parameters: the directory.
# host_path = "/srv/example"
