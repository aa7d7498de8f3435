# Gemini CLI
# model: gemini
# needs: @google/gemini-cli/package.json
mkdir "$HOME/.gemini"
cat >"$HOME/.gemini/settings.json" <<END
{"mcpServers":{"codehand":{"command":"$CODEHAND","args":["stdio"],"trust":true}},
"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true}}
END
export GOOGLE_GEMINI_BASE_URL="$MODEL" GEMINI_API_KEY=none GEMINI_TELEMETRY_ENABLED=false
exec node "$MODULES/.bin/gemini" -m gemini-2.5-flash --skip-trust -y -p "$PROMPT" </dev/null
