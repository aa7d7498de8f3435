// Counts what one run of a suite wrote, prints one row, and fails on anything but the expected.
//
// usage: node count.mjs NAME DIR SCENARIOS CHECKS [REQUIREMENTS.yaml]
//
// SCENARIOS and CHECKS are how many there must be, and all checks must have succeeded: INFO and SKIPPED count as
// nothing, and a WARNING fails, since it is a SHOULD of the specification. With a requirements file only the scenarios
// that it scores are counted, but the others must not fail either. The scenarios tasks-* belong to an extension that
// this server does not have.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [name, dir, scenarios, checks, requirements] = process.argv.slice(2);
const scored = requirements && new Set(
	readFileSync(requirements, 'utf8').match(/^server:\n((?: {2}- .*\n)+)/m)[1].trim().split('\n').map((line) => line.replace(/^\s*- /, '')));

const seen = new Set();
const bad = [];
let good = 0;
for (const run of readdirSync(dir).sort()) {
	const scenario = run.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
	if (scenario.startsWith('tasks-')) continue;
	const counts = !scored || scored.has(scenario);
	if (counts) seen.add(scenario);
	for (const check of JSON.parse(readFileSync(join(dir, run, 'checks.json'), 'utf8'))) {
		if (check.status === 'INFO' || check.status === 'SKIPPED') continue;
		if (check.status !== 'SUCCESS') bad.push(`${check.status} ${scenario} ${check.id}: ${check.errorMessage}`);
		else if (counts) good++;
	}
}
if (seen.size !== Number(scenarios)) bad.push(`${seen.size} scenarios ran, not ${scenarios}`);
if (good !== Number(checks)) bad.push(`${good} checks succeeded, not ${checks}`);
console.log(`${name.padEnd(44)} ${String(seen.size).padStart(3)} scenarios ${String(good).padStart(4)}/${checks} checks`);
for (const line of bad) console.log(`  ${line}`);
process.exit(bad.length ? 1 : 0);
