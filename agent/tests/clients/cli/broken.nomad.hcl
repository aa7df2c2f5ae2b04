job "broken" { group "g" {
