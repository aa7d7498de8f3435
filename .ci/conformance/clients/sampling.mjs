// What the model of a client that nobody here wrote does as a sub-agent, over a real connection. The programs beside
// this file bring the client.
//
// usage: as asking.mjs
//
// Each check is a line, `ok NAME` or `FAIL NAME: why`; the exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, flags, text, verdict } from './checking.mjs';

const file = (name) => join(flags.work, name);
const call = (id, name, input) => ({ type: 'tool_use', id, name, input });
const uses = (...content) => ({ role: 'assistant', model: 'scripted', stopReason: 'toolUse', content });
const says = (words) => ({ role: 'assistant', model: 'scripted', stopReason: 'endTurn', content: { type: 'text', text: words } });
const results = (params) => params.messages.at(-1).content.filter((p) => p.type === 'tool_result');

/**
 * Runs all checks. connect makes a client and returns {call(name, args, meta), close()}; it is called with the
 * transport, already made by make(flags), the client's capabilities, elicit(params) and sample(params), which answer.
 */
export async function run(make, connect) {
	let script = [];
	const asked = [], sampled = [];
	const elicit = (params) => {
		asked.push(params);
		return { action: 'accept', content: { decision: 'allow once' } };
	};
	const sample = (params) => {
		sampled.push(params);
		return script.shift()(params);
	};
	const open = (capabilities) => connect({ transport: make(flags), era: flags.era, capabilities, elicit, sample });
	const handle = (name) => ({ 'codehand/session': `sampling-${flags.transport}-${flags.era}-${name}` });

	const client = await open({ sampling: { tools: {} }, elicitation: {} });
	writeFileSync(file('a.txt'), 'one\ntwo\n');
	await check('a sub-agent reads, asks the person, writes and reports', async () => {
		script = [
			(params) => {
				assert.equal(params.messages[0].content[0].text, 'where is two?');
				assert(params.tools.some((t) => t.name === 'read_file' && t.inputSchema.type === 'object'));
				return uses(call('r1', 'read_file', { file_path: 'a.txt' }), call('r2', 'grep_search', { pattern: 'two' }));
			},
			(params) => {
				const got = results(params);
				assert.deepEqual(got.map((p) => p.toolUseId), ['r1', 'r2']);
				assert.match(got[0].content[0].text, /^one\ntwo/);
				assert.match(got[1].content[0].text, /a\.txt/);
				return uses(call('w', 'run_shell', { command: `echo made | tee ${file('made.txt')}` }));
			},
			(params) => {
				assert.match(results(params)[0].content[0].text, /made/);
				return says('It is in line 2.');
			},
		];
		const result = await client.call('agent', { prompt: 'where is two?' }, handle('one'));
		assert(!result.isError, text(result));
		assert.match(text(result), /^It is in line 2\.\n\[agent agent_\w+ · general-purpose · 3 tool calls \(/);
		assert.match(text(result), / tool calls \(grep_search 1, read_file 1, run_shell 1\) · about /);
		assert.equal(sampled.length, 3);
		assert.equal(asked.length, 1);
		assert.match(asked[0].message, /^Allow run_shell: echo made /);
		assert.equal(readFileSync(file('made.txt'), 'utf8'), 'made\n');
	});
	await check('three sub-agents work side by side', async () => {
		const answer = (params) => says(`did ${params.messages[0].content[0].text}`);
		script = [answer, answer, answer];
		const result = await client.call('agent', { tasks: [{ prompt: 'A' }, { prompt: 'B' }, { prompt: 'C' }] }, handle('two'));
		for (const part of ['did A', 'did B', 'did C']) assert(text(result).includes(part), text(result));
	});
	await check('nine turns are answered within one call, and send_message goes on', async () => {
		const turns = Array.from({ length: 8 }, (_, i) => () => uses(call(`n${i}`, 'list_files', { pattern: '*' })));
		script = [...turns, () => says('nine')];
		let result = await client.call('agent', { prompt: 'count', name: 'counter' }, handle('three'));
		assert.match(text(result), /^nine\n/);
		script = [() => says('ten')];
		result = await client.call('send_message', { to: 'counter', message: 'and now?' }, handle('three'));
		assert.match(text(result), /^ten\n/);
	});
	await check('a model that refuses ends the sub-agent', async () => {
		script = [() => { throw new Error('the user said no'); }];
		const result = await client.call('agent', { prompt: 'x' }, handle('four')).catch((e) => ({ thrown: String(e) }));
		// The client of the modern era gives the whole call up; the legacy one answers the question with its error.
		if (flags.era === 'modern') assert.match(result.thrown, /the user said no/);
		else assert.match(text(result), /^AGENT_FAILED: the client did not let its model answer/);
	});
	await client.close();

	await check('a client whose sampling has no tools gets the brief', async () => {
		const before = sampled.length;
		const plain = await open({ sampling: {} });
		const result = await plain.call('agent', { prompt: 'x' }, handle('five'));
		assert.match(text(result), /^NOT EXECUTED: /);
		assert.equal(sampled.length, before);
		assert(!existsSync(file('b.txt')));
		await plain.close();
	});
	verdict();
}
