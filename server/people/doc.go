// Package people keeps how persons sign in: the passwords and passkeys of the owner and of a team's principals, and the
// invitations that let a principal choose them. They are in one file of the data directory, which commands and a
// running server share.
//
// It owns that file and the hashing of passwords. It knows no page, no browser and no client, and it never keeps a
// secret: passwords are kept as argon2id, the codes of invitations as SHA-256.
package people
