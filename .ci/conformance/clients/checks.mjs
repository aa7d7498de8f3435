// What a client that nobody here wrote must get from codehand, in three parts. The programs beside this file bring the
// client. testdata/clients/checks says the same in Go.
//
//   work     against `codehand serve`: list, each tool that there is, progress, cancel
//   restart  against `codehand serve`, which is killed and started again when this program says RESTART; it goes on
//            when it reads a line
//   ask      against the conformance fixture: progress in order, questions to the user
//
// usage: node PROGRAM.mjs PART --url URL [--token T] --transport http|sse --era legacy|modern [--work DIR] [--session H]
//        [--calls FILE]
//
// Each check is a line, `ok NAME` or `FAIL NAME: why`; the exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values: flags, positionals: [part] } = parseArgs({
	allowPositionals: true,
	options: {
		url: { type: 'string' }, token: { type: 'string' }, transport: { type: 'string' }, era: { type: 'string' },
		work: { type: 'string' }, session: { type: 'string' }, calls: { type: 'string' },
	},
});

/** How often and how long something outside is looked for before the check fails. */
const every = 20, patience = 20_000;

let failed = false;

async function check(name, body) {
	try {
		await body();
		console.log(`ok ${name}`);
	} catch (e) {
		failed = true;
		console.log(`FAIL ${name}: ${String(e.stack ?? e).split('\n').slice(0, 6).join(' | ')}`);
	}
}

async function until(what, holds) {
	for (let left = patience; !holds(); left -= every) {
		assert(left > 0, `${what}: not within ${patience} ms`);
		await new Promise((done) => setTimeout(done, every));
	}
}

function alive(pid) {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

const text = (result) => result.content.map((c) => c.text ?? '').join('\n');

/**
 * Runs the part that the command line names. connect returns the wrapped client:
 *   server()                            the name that the server gave itself
 *   list()                              the names of all tools
 *   call(name, args, {onprogress, signal, meta})   the result; rejects with an error that has a code
 *   close()
 * It is called with {url, headers, transport, era, elicit}; elicit(message) answers a question.
 */
export async function run(connect) {
	const open = () => connect({
		url: new URL(flags.url), headers: flags.token ? { Authorization: `Bearer ${flags.token}` } : {},
		transport: flags.transport, era: flags.era,
		elicit: (message) => message.startsWith('exit_plan_mode: ') ? { action: 'accept', content: { decision: 'approve, accept edits' } }
			: message.startsWith('ask_user_question: ') ? { action: 'accept', content: { q1: 'b <c>', q2: ['d', 'e'], q3_other: 'ünder\ntwo' } }
			: message.includes('decline') ? { action: 'decline' } : { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } },
	});
	const meta = flags.session ? { 'codehand/session': flags.session } : undefined;
	await { work, restart, ask }[part](open, (client, name, args, more = {}) => client.call(name, args, { ...more, meta }));
	process.exit(failed ? 1 : 0); // a client's reconnect timers do not hold the program
}

async function work(open, call) {
	const client = await open();
	let listed = [];
	await check('connect', () => assert.equal(client.server(), 'codehand'));
	await check('list', async () => {
		listed = await client.list();
		assert(listed.length > 0, 'no tools');
		assert.equal(new Set(listed).size, listed.length);
	});

	const called = new Set();
	let job = '';
	const fill = (value) => typeof value === 'string' ? value.replaceAll('$WORK', flags.work).replaceAll('$JOB', job)
		: Array.isArray(value) ? value.map(fill)
			: value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fill(v)])) : value;
	for (const c of JSON.parse(readFileSync(flags.calls, 'utf8'))) {
		await check(`call ${c.tool}${c.error ? ', refused' : ''}`, async () => {
			called.add(c.tool);
			const result = await call(client, c.tool, fill(c.arguments));
			if (c.either) return;
			assert.equal(result.isError ?? false, c.error ?? false, text(result));
			if (c.job) job = result._meta['codehand/job'].id;
			assert(text(result).includes(fill(c.has)), `${JSON.stringify(fill(c.has))} is not in ${JSON.stringify(text(result))}`);
		});
	}
	await check('every listed tool was called', () =>
		assert.deepEqual(listed.filter((name) => !called.has(name)), [], 'set Spec.Example of these, or add calls to testdata/clients/calls.json'));

	await check('progress', async () => {
		const seen = [];
		const result = await call(client, 'run_shell', { command: 'for i in 1 2 3; do echo line $i; sleep 0.8; done' }, {
			onprogress: (p) => seen.push(p),
		});
		assert(text(result).startsWith('line 1\nline 2\nline 3'), text(result));
		assert(seen.length > 0, 'no progress');
		seen.reduce((a, b) => { assert(b.progress > a.progress, 'progress does not grow'); return b; });
		assert(seen.some((p) => p.message?.includes('line')), JSON.stringify(seen));
	});

	await check('cancel', async () => {
		const pidfile = join(flags.work, 'pid'), stop = new AbortController();
		const running = call(client, 'run_shell', { command: `echo $$ >'${pidfile}.new'; mv '${pidfile}.new' '${pidfile}'; sleep 300` }, { signal: stop.signal });
		running.catch(() => {});
		await until('the command starts', () => existsSync(pidfile));
		const pid = Number(readFileSync(pidfile, 'utf8'));
		assert(alive(pid), 'the command does not run');
		stop.abort(new Error('no longer wanted'));
		await assert.rejects(running);
		await until('the command ends', () => !alive(pid));
	});
	await check('a call after the cancel', async () =>
		assert.equal(text(await call(client, 'run_shell', { command: 'echo still here' })).trim(), 'still here'));
	await client.close();
}

async function restart(open, call) {
	let client = await open();
	const file = join(flags.work, 'kept.txt');
	await check('read before the restart', async () => {
		const result = await call(client, 'read_file', { file_path: file });
		assert(text(result).includes('kept'), text(result));
	});
	const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
	console.log('RESTART');
	await lines.next();
	if (flags.transport === 'sse') client = await open(); // its stream ended with the server
	await check('edit after the restart, unread since', async () => {
		const result = await call(client, 'edit_file', { file_path: file, old_string: 'kept', new_string: 'edited' });
		assert(!result.isError, text(result));
		assert.equal(readFileSync(file, 'utf8'), 'edited\n');
	});
	await check('edit of a file that was never read is refused', async () => {
		const result = await call(client, 'edit_file', { file_path: join(flags.work, 'unread.txt'), old_string: 'x', new_string: 'y' });
		assert(result.isError && text(result).startsWith('FILE_NOT_READ'), text(result));
	});
	await client.close();
}

async function ask(open, call) {
	const client = await open();
	await check('progress, whole and in order', async () => {
		const seen = [];
		await call(client, 'test_tool_with_progress', {}, { onprogress: (p) => seen.push(p.progress) });
		assert.deepEqual(seen, [0, 50, 100]);
	});
	await check('elicitation, accepted', async () =>
		assert.equal(text(await call(client, 'test_elicitation', { message: 'accept this' })),
			'User response: action=accept, content={"email":"ada@example.com","username":"ada"}'));
	await check('elicitation, declined', async () =>
		assert.match(text(await call(client, 'test_elicitation', { message: 'decline this' })), /^User response: action=decline/));
	await check('a capability that the client did not declare', async () => {
		if (flags.era === 'modern') return assert.rejects(call(client, 'test_sampling', { prompt: 'hello' }), (e) => e.code === -32021);
		const result = await call(client, 'test_sampling', { prompt: 'hello' });
		assert(result.isError, text(result));
	});
	await client.close();
}
