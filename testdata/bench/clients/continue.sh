# Continue
# snippet: continue
# model: chat
# needs: @continuedev/cli/package.json
mkdir -p "$HOME/.continue"
test -e "$HOME/.continue/config.yaml" || cat >"$HOME/.continue/config.yaml" <<END
name: codehand
version: 1.0.0
schema: v1
mcpServers:
  - name: codehand
    command: $CODEHAND
    args: [stdio]
END
cat >>"$HOME/.continue/config.yaml" <<END
models:
  - name: fake
    provider: openai
    model: fake
    apiBase: $MODEL/v1
    apiKey: none
    roles: [chat]
    capabilities: [tool_use]
END
exec node "$MODULES/.bin/cn" --config "$HOME/.continue/config.yaml" --auto -p "$PROMPT" </dev/null
