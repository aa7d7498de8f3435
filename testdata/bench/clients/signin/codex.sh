# Codex
# model: responses
# needs: @openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex
codex="$MODULES/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
mkdir -p "$HOME/.codex"
cat >"$HOME/.codex/config.toml" <<END
mcp_oauth_credentials_store = "file"
[mcp_servers.codehand]
url = "$URL"
tool_timeout_sec = 600
startup_timeout_sec = 20
default_tools_approval_mode = "approve"
END
case $STEP in
login) exec "$codex" mcp login --oauth-client-registration cimd codehand ;;
use)
	exec "$codex" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -c model=my-own \
		-c model_provider=scripted \
		-c "model_providers.scripted={name=\"scripted\",base_url=\"$MODEL/v1\",wire_api=\"responses\"}" "$PROMPT" </dev/null
	;;
esac
