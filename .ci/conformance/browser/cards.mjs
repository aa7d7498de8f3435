// Cards of a chat in Chromium: the official client of TypeScript lists and calls the tools of a codehand on stdio, and the
// bridge for hosts of MCP Apps feeds our page in a frame that is as closed as the extension wants it.
//
// usage: node cards.mjs --command CODEHAND --work DIR [--out DIR]
//
// Each check is a line, `ok NAME` or `FAIL NAME: why`. Pictures go to the directory of --out.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';

import { accessible, check, finish, launch, open, shoot } from './browser.mjs';

const { values: flags } = parseArgs({
	options: { command: { type: 'string' }, work: { type: 'string' }, out: { type: 'string' } },
});
const type = 'text/html;profile=mcp-app';
const origin = 'http://chat.test', frame = 'http://card.test';

async function connect(capabilities, more = {}) {
	const client = new Client({ name: 'chat', version: '1.0.0' }, { capabilities });
	await client.connect(new StdioClientTransport({ command: flags.command, args: ['stdio', flags.work], cwd: flags.work, env: { ...process.env, ...more } }));
	return client;
}

const browser = await launch();
const chat = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [type] } } };
let client = await connect(chat);
const { tools } = await client.listTools();
const named = Object.fromEntries(tools.map((t) => [t.name, t]));
const file = (name) => join(flags.work, name);

/** A Card is the page in a frame of a chat, with the bridge behind it. */
class Card {
	async show(name, args, context = {}) {
		const page = await open(browser, origin, { viewport: { width: 420, height: 700 }, colorScheme: context.theme ?? 'light' });
		this.page = page;
		page.wrong = page.wrong.filter(() => false);
		const { contents: [html] } = await client.readResource({ uri: named[name]._meta.ui.resourceUri });
		assert.equal(html.mimeType, type);
		assert(html.text.length < 30_000, `the page has ${html.text.length} characters`);
		await page.route(`${origin}/`, (r) => r.fulfill({
			contentType: 'text/html; charset=utf-8',
			body: `<!doctype html><html lang="en"><title>chat</title><main><h1>Chat</h1><iframe title="card" sandbox="allow-scripts" style="border:0;width:100%;height:500px"></iframe></main>`,
		}));
		await page.route(`${frame}/`, (r) => r.fulfill({
			contentType: 'text/html; charset=utf-8', body: html.text,
			headers: { 'content-security-policy': "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'none'" },
		}));
		const transport = this.transport = { start: async () => {}, close: async () => {}, send: (m) =>
			page.evaluate((m) => document.querySelector('iframe').contentWindow.postMessage(m, '*'), m) };
		await page.exposeFunction('heard', (m) => transport.onmessage(m));
		await page.goto(`${origin}/`);
		await page.evaluate(() => addEventListener('message', (e) => window.heard(e.data)));
		this.bridge = new AppBridge(client, { name: 'chat', version: '1.0.0' },
			{ serverTools: {}, serverResources: {}, message: {} }, { hostContext: { toolInfo: { tool: named[name] }, ...context } });
		this.messages = [];
		this.bridge.onmessage = async (m) => { this.messages.push(m); return {}; };
		this.bridge.onsizechange = ({ height }) => { this.height = height; };
		const ready = new Promise((done) => { this.bridge.oninitialized = done; });
		await this.bridge.connect(transport);
		await page.evaluate((src) => { document.querySelector('iframe').src = src; }, `${frame}/`);
		await ready;
		await this.bridge.sendToolInput({ arguments: args });
		this.result = await client.callTool({ name, arguments: args });
		await this.bridge.sendToolResult(this.result);
		this.inside = page.frameLocator('iframe');
		return this;
	}
	text() { return this.inside.locator('main').innerText(); }
	press(name) { return this.inside.getByRole('button', { name }).click(); }
	status() { return this.inside.getByRole('status').innerText(); }
	async end() {
		assert.deepEqual(this.page.wrong.filter((w) => !w.startsWith('asks http://card.test')), []);
		await this.bridge.teardownResource({});
		await this.page.context().close();
	}
}

await check('only clients that show cards are told of them', async () => {
	const other = await connect({});
	const all = await other.listTools();
	assert(!JSON.stringify(all).includes('ui://'));
	assert(all.tools.every((t) => t.name !== 'undo_change'), 'undo_change is listed for a client without cards');
	await other.close();
	assert(named.undo_change, 'undo_change is not listed, and hosts call only what is');
	for (const name of ['edit_file', 'write_file', 'run_shell']) assert.equal(named[name]._meta.ui.resourceUri, 'ui://codehand/card');
	assert.equal(named.read_file._meta?.ui, undefined);
});

await check('an edit is drawn, taken back and made again', async () => {
	writeFileSync(file('a.txt'), 'one\ntwo\nthree\n');
	await client.callTool({ name: 'read_file', arguments: { file_path: file('a.txt') } });
	const card = await new Card().show('edit_file', { file_path: file('a.txt'), old_string: 'two', new_string: 'two <b>and</b> more' });
	assert.match(await card.text(), /a\.txt[^]*\+1 -1/);
	assert.equal(await card.inside.locator('.add mark').innerText(), ' <b>and</b> more');
	await accessible(card.page);
	await shoot(card.page, flags.out, 'card-edit');
	await card.press('Undo');
	await card.inside.getByRole('button', { name: 'Redo' }).waitFor();
	assert.equal(readFileSync(file('a.txt'), 'utf8'), 'one\ntwo\nthree\n');
	await card.press('Redo');
	await card.inside.getByRole('button', { name: 'Undo' }).waitFor();
	assert.equal(readFileSync(file('a.txt'), 'utf8'), 'one\ntwo <b>and</b> more\nthree\n');
	assert(card.height > 50 && card.height < 500, `the card says that it is ${card.height} high`);
	await card.end();
});

await check('what changed meanwhile is not overwritten', async () => {
	writeFileSync(file('b.txt'), 'one\n');
	await client.callTool({ name: 'read_file', arguments: { file_path: file('b.txt') } });
	const card = await new Card().show('edit_file', { file_path: file('b.txt'), old_string: 'one', new_string: 'two' }, { theme: 'dark' });
	await shoot(card.page, flags.out, 'card-edit-dark');
	await accessible(card.page);
	writeFileSync(file('b.txt'), 'mine\n');
	await card.press('Undo');
	await card.inside.getByRole('status').waitFor();
	assert.match(await card.status(), /^UNDO_CONFLICT/);
	assert.equal(readFileSync(file('b.txt'), 'utf8'), 'mine\n');
	await card.end();
});

await check('nothing in a file runs', async () => {
	const card = await new Card().show('write_file', {
		file_path: file('<img src=x onerror=parent.postMessage(1)>.html'),
		content: `<script>document.title='x'</scr` + `ipt>\u202egnp.exe\n${'x'.repeat(1e6)}\n`,
	});
	assert.match(await card.text(), /<script>document\.title='x'[^]*\\u\{?202e\}?gnp/);
	assert.equal(await card.inside.locator('img, script:not(main + script)').count(), 0);
	await card.end();
});

await check('a job is stopped', async () => {
	const card = await new Card().show('run_shell', { command: 'echo begun; sleep 1000', run_in_background: true });
	assert.match(await card.text(), /sleep 1000[^]*runs/);
	await shoot(card.page, flags.out, 'card-job');
	await card.press('Stop');
	await card.inside.getByText('stopped', { exact: true }).waitFor();
	await card.end();
});

await check('the end of a job is shown, and its output is left to the model', async () => {
	const card = await new Card().show('run_shell', { command: 'sleep 1; echo over', run_in_background: true });
	await card.inside.getByText('completed, exit 0').waitFor();
	const { content } = await client.callTool({ name: 'job_output', arguments: { job_id: card.result._meta['codehand/job'].id } });
	assert.match(content[0].text, /over/);
	await card.end();
});

await check('a plan is approved by a message of the person', async () => {
	await client.close();
	client = await connect(chat, { CODEHAND_PERMISSIONS_MODE: 'plan', CODEHAND_PLAN_APPROVAL_FALLBACK: 'console' });
	await client.callTool({ name: 'tool_search', arguments: { query: 'select:exit_plan_mode' } });
	named.exit_plan_mode = (await client.listTools()).tools.find((t) => t.name === 'exit_plan_mode');
	const card = await new Card().show('exit_plan_mode', { plan: '1. Think.\n2. Write.' });
	assert.match(await card.text(), /Plan[^]*1\. Think\.\n2\. Write\./);
	await shoot(card.page, flags.out, 'card-plan');
	await card.press('Approve');
	await card.inside.getByText('Sent.').waitFor();
	assert.deepEqual(card.messages.map((m) => m.role), ['user']);
	await card.end();
});

await finish(browser, client);
