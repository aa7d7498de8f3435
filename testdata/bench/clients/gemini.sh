# Gemini CLI
# snippet: gemini
# model: gemini
# needs: @google/gemini-cli/package.json
mkdir -p "$HOME/.gemini"
test -e "$HOME/.gemini/settings.json" || cat >"$HOME/.gemini/settings.json" <<END
{"mcpServers":{"codehand":{"command":"$CODEHAND","args":["stdio"],"trust":true}}}
END
mkdir "$WORK/.gemini"
cat >"$WORK/.gemini/settings.json" <<END
{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},
"general":{"disableAutoUpdate":true}}
END
export GEMINI_CLI_TRUST_WORKSPACE=true # it reads a project's settings only then
export GOOGLE_GEMINI_BASE_URL="$MODEL" GEMINI_API_KEY=none GEMINI_TELEMETRY_ENABLED=false
exec node "$MODULES/.bin/gemini" -m gemini-2.5-flash --skip-trust -y -p "$PROMPT" </dev/null
