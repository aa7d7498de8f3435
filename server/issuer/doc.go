// Package issuer accepts access tokens of external issuers: JWTs that an identity provider of the operator signed.
//
// It owns the checks of such a token, the keys that they need, and what the claims mean here: principal, scopes and
// groups. It is an auth.Source. It issues no tokens, has no sign-in, and never asks an issuer about a single token.
package issuer
