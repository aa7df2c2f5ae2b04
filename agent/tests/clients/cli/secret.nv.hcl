path = "app/db"

items {
  user     = "db"
  password = "secret1"
}
