// What the programs beside this file share that run checks: their flags, and the lines that they print.
import { parseArgs } from 'node:util';

export const { values: flags } = parseArgs({
	options: {
		url: { type: 'string' }, token: { type: 'string' }, transport: { type: 'string' }, era: { type: 'string' },
		work: { type: 'string' }, command: { type: 'string' },
	},
});

let failed = false;

/** Runs a check and prints its line. */
export async function check(name, body) {
	try {
		await body();
		console.log(`ok ${name}`);
	} catch (e) {
		failed = true;
		console.log(`FAIL ${name}: ${String(e.stack ?? e).split('\n').slice(0, 6).join(' | ')}`);
	}
}

/** The text of a result. */
export const text = (result) => result.content.map((c) => c.text ?? '').join('\n');

/** Ends the program; a client's reconnect timers do not hold it. */
export const verdict = () => process.exit(failed ? 1 : 0);
