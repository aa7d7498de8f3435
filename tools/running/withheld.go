package running

import (
	"path"
	"slices"
	"strings"

	"codehand/tools/bash"
	"codehand/tools/sandbox"
)

// wanted are the variables that programs are known to read: how a program is called, and the variables or their
// beginnings. Only what fails without them is here, and no variable that is never passed.
var wanted = map[string][]string{
	"gh": {"GH_*", "GITHUB_TOKEN", "GITHUB_ENTERPRISE_TOKEN"}, "hub": {"GITHUB_TOKEN"}, "glab": {"GITLAB_*"},
	"aws": {"AWS_*"}, "sam": {"AWS_*"}, "cdk": {"AWS_*"}, "eksctl": {"AWS_*", "KUBECONFIG"},
	"terraform": {"TF_*", "AWS_*", "ARM_*", "GOOGLE_*"}, "tofu": {"TF_*", "AWS_*", "ARM_*", "GOOGLE_*"},
	"pulumi": {"PULUMI_*", "AWS_*"}, "gcloud": {"CLOUDSDK_*", "GOOGLE_*"}, "gsutil": {"CLOUDSDK_*", "GOOGLE_*"},
	"az": {"AZURE_*"}, "doctl": {"DIGITALOCEAN_*"}, "flyctl": {"FLY_*"}, "fly": {"FLY_*"}, "heroku": {"HEROKU_*"},
	"vercel": {"VERCEL_*"}, "netlify": {"NETLIFY_*"}, "wrangler": {"CLOUDFLARE_*"}, "vault": {"VAULT_*"},
	"kubectl": {"KUBECONFIG"}, "helm": {"KUBECONFIG", "HELM_*"}, "k9s": {"KUBECONFIG"}, "docker": {"DOCKER_CONFIG"},
	"npm publish": {"NPM_*", "NODE_AUTH_TOKEN", "npm_config_*"}, "npm whoami": {"NPM_*", "NODE_AUTH_TOKEN"},
	"pnpm publish": {"NPM_*", "NODE_AUTH_TOKEN"}, "yarn publish": {"NPM_*", "NODE_AUTH_TOKEN", "YARN_*"},
	"cargo publish": {"CARGO_*"}, "twine": {"TWINE_*"}, "uv publish": {"UV_*"}, "poetry publish": {"POETRY_*"},
	"psql": {"PG*"}, "pg_dump": {"PG*"}, "mysql": {"MYSQL_*"}, "redis-cli": {"REDISCLI_*"},
}

// maxWithheld is how many variables one line names.
const maxWithheld = 4

// withheldLine says that a command which failed may have wanted variables that commands do not get, and which setting
// passes them; "": it is not known to.
func withheldLine(a *bash.Analysis, withheld []string) string {
	if a == nil || len(withheld) == 0 {
		return ""
	}
	for _, part := range a.Parts {
		for _, form := range part.Forms {
			program, patterns := wants(form)
			names := slices.DeleteFunc(slices.Clone(withheld), func(name string) bool {
				return !sandbox.Matches(patterns, name) || sandbox.Never(name)
			})
			if len(names) > 0 {
				names = names[:min(len(names), maxWithheld)]
				return "[" + program + " may want " + strings.Join(names, ", ") + ", which commands do not get; the " +
					"user can set " + settingsFor(names) + "]"
			}
		}
	}
	return ""
}

// wants finds what a simple command is called in wanted.
func wants(form string) (program string, patterns []string) {
	words := strings.Fields(form)
	if len(words) == 0 {
		return "", nil
	}
	program = path.Base(words[0])
	if patterns, ok := wanted[program]; ok {
		return program, patterns
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") {
			return program + " " + word, wanted[program+" "+word]
		}
	}
	return "", nil
}

// settingsFor are the settings that pass names on.
func settingsFor(names []string) string {
	var plain, secret []string
	for _, name := range names {
		if sandbox.SoundsSecret(name) {
			secret = append(secret, name)
		} else {
			plain = append(plain, name)
		}
	}
	var all []string
	if len(plain) > 0 {
		all = append(all, `shell.env_allow = ["`+strings.Join(plain, `", "`)+`"]`)
	}
	if len(secret) > 0 {
		all = append(all, `shell.env_allow_secret = ["`+strings.Join(secret, `", "`)+`"]`)
	}
	return strings.Join(all, " and ")
}
