name        = "team"
description = "of the team"

meta {
  owner = "somebody"
}
