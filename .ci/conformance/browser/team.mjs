// Two people of a team in Chromium: each opens her invitation, sets a password or a passkey, and lets a client in, which is
// the official TypeScript SDK. It works in her workspace and in no other. The pages show each of them what her client
// does, and nothing of the other.
//
// An administrator sees both, stops a command, takes a change back, ends the access of a client and invites a person.
//
// usage: node team.mjs --url URL --alice LINK --bob LINK --carol LINK [--out DIR]
//
// The host of all URLs must be localhost, since an address has no passkeys. It says RESTART, and goes on when it reads a
// line. Each check is a line, `ok NAME` or
// `FAIL NAME: why`. Pictures go to DIR.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { accessible, authenticator, callback, check, comesBack, finish, launch, open, shoot, tab, types } from './browser.mjs';

const { values: flags } = parseArgs({
	options: { url: { type: 'string' }, alice: { type: 'string' }, bob: { type: 'string' }, carol: { type: 'string' }, out: { type: 'string' } },
});
const loopback = await callback(), browser = await launch();
const endpoint = new URL(flags.url), origin = endpoint.origin, secure = endpoint.protocol === 'https:';
const password = 'four words are enough', approve = 'button[value=approve]';
const sizes = { phone: { width: 360, height: 740 }, desk: { width: 1280, height: 900 } };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const answer = async (line) => {
	console.log(line);
	await lines.next();
};
const seen = (page, name) => accessible(page).then(() => shoot(page, flags.out, name));

/** account is what a person allowed, in a browser in which she has signed in before. */
async function account(page, name) {
	await comesBack(page, `${origin}/signin/`, '#keys', async () => {
		await types(page, name);
		await page.keyboard.press('Tab');
		await types(page, password);
		await page.keyboard.press('Enter');
	});
	return page.locator('main').innerText();
}

/** A program of one person, whose browser is at hand. */
class Program {
	constructor(name) { this.name = name; }
	get redirectUrl() { return `http://127.0.0.1:${loopback.port}/callback`; }
	get clientMetadata() {
		return {
			client_name: this.name, redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none',
			grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
		};
	}
	state() { return this.said ??= crypto.randomUUID(); }
	clientInformation() { return this.client; }
	saveClientInformation(c) { this.client = c; }
	tokens() { return this.kept; }
	saveTokens(t) { this.kept = t; }
	redirectToAuthorization(url) { this.opened = url.href; }
	saveCodeVerifier(v) { this.verifier = v; }
	codeVerifier() { return this.verifier; }
	saveDiscoveryState(d) { this.discovery = d; }
	discoveryState() { return this.discovery; }

	async connect() {
		const client = new Client({ name: this.name, version: '1.0.0' }, { capabilities: {} });
		await client.connect(new StreamableHTTPClientTransport(endpoint, { authProvider: this }));
		return client;
	}
	/** signIn asks for a browser, which goes through our pages as walk says. */
	async signIn(page, walk) {
		await assert.rejects(this.connect(), (e) => e instanceof UnauthorizedError || assert.fail(e));
		await page.goto(this.opened);
		await walk();
		const { url } = await loopback.next();
		assert.equal(url.searchParams.get('error'), null);
		assert.equal(url.searchParams.get('state'), this.said);
		await new StreamableHTTPClientTransport(endpoint, { authProvider: this }).finishAuth(url.searchParams);
		return this.connect();
	}
}

/** hers: the client sees the files of one person, changes them, and does not get at those of another. */
async function hers(client, who, other) {
	const call = async (name, args) => {
		const result = await client.callTool({ name, arguments: args });
		return (result.isError ? '! ' : '') + result.content.map((c) => c.text ?? '').join('\n');
	};
	const list = await call('list_files', { pattern: '**' });
	assert(list.includes(`of-${who}.txt`) && !list.includes(other), list);
	assert.match(await call('read_file', { file_path: `../${other}/of-${other}.txt` }), /^! OUTSIDE_ROOTS/);
	assert.match(await call('list_files', { pattern: '*', path: '..' }), /^! OUTSIDE_ROOTS/);
	await write(client, 'made.txt', `by ${who}`);
}

async function write(client, file_path, content) {
	const result = await client.callTool({ name: 'write_file', arguments: { file_path, content } });
	assert(!result.isError, result.content[0].text);
}

const row = (page, what) => page.locator('tr', { hasText: what }).first();
const nav = async (page, title) => {
	await page.click(`nav >> text=${title}`);
	await page.locator('h1', { hasText: title }).waitFor();
};

/** pages opens the pages of serve: over plain http, and in a new browser, a person signs in first. */
async function pages(page, name) {
	await page.goto(`${origin}/`);
	await page.getByRole('link', { name: 'Sign in' }).click();
	await page.fill('#name', name);
	await page.fill('#password', password);
	await page.keyboard.press('Enter');
	await page.getByRole('heading', { name: 'Approvals' }).waitFor();
}

for (const [size, viewport] of Object.entries(sizes)) {
	for (const colorScheme of ['light', 'dark']) {
		await check(`${size}, ${colorScheme}: an invitation, looked at and not used`, async () => {
			const page = await open(browser, origin, { viewport, colorScheme });
			await page.goto(flags.alice);
			await page.waitForSelector('#again');
			assert(!page.url().includes(new URL(flags.alice).pathname.split('/').pop()), 'the code stays in the address bar');
			await seen(page, `invite-${size}-${colorScheme}`);
			await page.fill('#password', password);
			await page.fill('#again', password + '!');
			await page.keyboard.press('Enter');
			await page.waitForSelector('[role=alert]');
			await seen(page, `invite-wrong-${size}-${colorScheme}`);
			assert.deepEqual(page.wrong, []);
			await page.context().close();
		});
	}
}

const hisBrowser = await open(browser, origin, { viewport: sizes.desk });
let hers1, editor, his; // the browser and the client of alice, and the client of bob

await check('alice sets a password, by keyboard and without script', async () => {
	hers1 = await open(browser, origin, { viewport: sizes.phone, javaScriptEnabled: false });
	await hers1.goto(flags.alice);
	assert.equal(await hers1.locator('[data-passkey]:visible').count(), 0, 'what needs script is shown');
	await types(hers1, password);
	await hers1.keyboard.press('Tab');
	await types(hers1, password);
	await hers1.keyboard.press('Enter');
	await hers1.getByRole('heading', { name: 'What you allowed' }).waitFor();
	assert.deepEqual(hers1.wrong, []);
});
await check('the link is used up', async () => {
	for (const [size, viewport] of Object.entries(sizes)) {
		for (const colorScheme of ['light', 'dark']) {
			const page = await open(browser, origin, { viewport, colorScheme });
			const answer = await page.goto(flags.alice);
			assert.equal(answer.status(), 410);
			assert.equal(await page.locator('input[type=password]').count(), 0);
			await seen(page, `invite-used-${size}-${colorScheme}`);
			await page.getByRole('link', { name: 'Sign in' }).click();
			await page.waitForSelector('#name');
			await page.context().close();
		}
	}
});
await check('alice signs in with name and password on another device, and works in her workspace', async () => {
	const page = await open(browser, origin, { viewport: sizes.phone, colorScheme: 'dark' });
	const client = await new Program("Alice's editor").signIn(page, async () => {
		await page.waitForSelector('#name');
		await seen(page, 'team-login-phone-dark');
		await types(page, 'alice');
		await page.keyboard.press('Tab');
		await types(page, 'not the password');
		await page.keyboard.press('Enter');
		await page.waitForSelector('[role=alert]');
		await seen(page, 'team-login-wrong-phone-dark');
		assert.equal(await page.inputValue('#name'), 'alice', 'the name must be typed again');
		await types(page, password);
		await page.keyboard.press('Enter');
		await page.waitForSelector(approve);
		await seen(page, 'team-ask-phone-dark');
		const text = await page.locator('main').innerText();
		assert(text.includes('alice') && !text.includes('/bob'), text);
		await tab(page, approve);
		await page.keyboard.press('Enter');
	});
	await hers(client, 'alice', 'bob');
	editor = client;
	assert.match(await account(page, 'alice'), /Alice's editor/);
	await seen(page, 'team-account-phone-dark');
	await page.context().close();
});
await check('bob takes a passkey, signs out and in with it, and works in his workspace', async () => {
	const { keys } = await authenticator(hisBrowser);
	await hisBrowser.goto(flags.bob);
	await hisBrowser.click('[data-passkey=invite] button');
	await hisBrowser.getByRole('heading', { name: 'What you allowed' }).waitFor();
	assert.equal((await keys()).length, 1);
	await hisBrowser.click('form[action$=logout] button');
	await hisBrowser.waitForLoadState();
	await hisBrowser.context().clearCookies();
	const client = await new Program("Bob's editor").signIn(hisBrowser, async () => {
		await hisBrowser.click('[data-passkey=login] button');
		await hisBrowser.waitForSelector(approve);
		await seen(hisBrowser, 'team-ask-desk-light');
		await hisBrowser.click(approve);
	});
	await hers(client, 'bob', 'alice');
	his = client;
	assert.deepEqual(hisBrowser.wrong, []);
});
await check('a link that was used with a passkey is used up', async () => {
	const page = await open(browser, origin);
	assert.equal((await page.goto(flags.bob)).status(), 410);
	await page.context().close();
});
await check('alice sees nothing of what bob allowed', async () => {
	const text = await account(hers1, 'alice');
	assert(text.includes("Alice's editor") && !text.includes('Bob'), text);
});
await check('alice sees at once what her client does, takes a change back and pauses it', async () => {
	const page = await open(browser, origin, { viewport: sizes.phone });
	await pages(page, 'alice');
	await seen(page, 'team-approvals');
	await nav(page, 'Connect');
	assert.match(await page.locator('main').innerText(), new RegExp(`${origin}/mcp`));
	await nav(page, 'Activity');
	await row(page, 'made.txt').waitFor();
	await write(editor, 'more.txt', 'one\n');
	await row(page, 'more.txt').waitFor({ timeout: 10_000 }); // without a reload
	await seen(page, 'team-activity');
	await answer('RESTART');
	await page.locator('text=The server does not answer').waitFor({ state: 'detached', timeout: 20_000 });
	await write(editor, 'later.txt', 'one\n');
	await row(page, 'later.txt').waitFor({ timeout: 20_000 });
	assert.equal(await page.locator('tr', { hasText: 'more.txt' }).count(), 1, 'rows of one call');
	await nav(page, 'Changes');
	await row(page, 'more.txt').locator('a').first().click();
	await page.click('text=Undo this change');
	await page.waitForSelector('text=Taken back.');
	await seen(page, 'team-undone');
	await nav(page, 'Approvals');
	await page.click('text=Pause everything');
	await page.click('form.paused button');
	await page.waitForSelector('text=Calls run again.');
	await page.click('text=Account');
	await page.waitForSelector('#keys');
	const gone = /ERR_(CONNECTION_REFUSED|EMPTY_RESPONSE|CONNECTION_RESET|INCOMPLETE_CHUNKED_ENCODING)/; // while it was restarted
	assert.deepEqual(page.wrong.filter((w) => !gone.test(w)), []);
	await page.context().close();
});
await check('bob sees nothing of what alice did, and takes nothing back', async () => {
	const herPage = await open(browser, origin);
	await pages(herPage, 'alice');
	await nav(herPage, 'Changes');
	const at = new URL(await row(herPage, 'later.txt').locator('a').first().getAttribute('href'), `${origin}/`).pathname;
	await herPage.context().close();
	await hisBrowser.goto(`${origin}/`);
	if (!secure) {
		await hisBrowser.getByRole('link', { name: 'Sign in' }).click();
		await hisBrowser.click('[data-passkey=login] button');
	}
	await hisBrowser.getByRole('heading', { name: 'Approvals' }).waitFor();
	await nav(hisBrowser, 'Activity');
	await row(hisBrowser, 'made.txt').waitFor();
	for (const title of ['Activity', 'Changes']) {
		await nav(hisBrowser, title);
		const text = await hisBrowser.locator('main').innerText();
		assert(!/later\.txt|more\.txt|Alice's editor/.test(text), text);
	}
	const query = new URL(hisBrowser.url()).search;
	assert.equal((await hisBrowser.goto(origin + at + query)).status(), 404);
	assert(!/later/.test(await hisBrowser.locator('main').innerText()));
	assert.deepEqual(hisBrowser.wrong, []);
});
await check('carol, an administrator, sees both, stops a command of one and takes back a change of the other', async () => {
	const began = await his.callTool({ name: 'run_shell', arguments: { command: 'sleep 600', run_in_background: true } });
	assert(!began.isError, began.content[0].text);
	const page = await open(browser, origin, { viewport: sizes.phone });
	await page.goto(flags.carol);
	await page.fill('#password', password);
	await page.fill('#again', password);
	await page.keyboard.press('Enter');
	await page.getByRole('heading', { name: 'What you allowed' }).waitFor();
	if (secure) await page.goto(`${origin}/`); // the browser is signed in
	else await pages(page, 'carol');
	await nav(page, 'Activity');
	await row(page, 'later.txt').waitFor();
	assert.match(await page.locator('main').innerText(), /for bob/);
	await seen(page, 'team-admin-activity');
	await row(page, 'sleep 600').locator('button').click();
	await page.waitForSelector('text=The command was stopped.');
	await row(page, 'later.txt').getByRole('link', { name: 'alice' }).click();
	await page.waitForSelector('text=Of alice.');
	assert(!/for bob/.test(await page.locator('main').innerText()), 'calls of bob are listed as those of alice');
	await nav(page, 'Changes');
	await page.waitForSelector('text=Of alice.');
	await seen(page, 'team-admin-changes');
	await row(page, 'later.txt').locator('a').first().click();
	await page.click('text=Undo this change');
	await page.waitForSelector('text=Taken back.');
	await seen(page, 'team-admin-undone');
	await page.click('text=All changes');
	await page.waitForSelector('text=Of alice.');
	assert.match((await editor.callTool({ name: 'read_file', arguments: { file_path: 'later.txt' } })).content[0].text, /NOT_FOUND|no such/i);
	assert.deepEqual(page.wrong, []);
	await page.context().close();
});
await check('carol looks at people, ends the access of bob\'s client and invites dora', async () => {
	let link;
	for (const [size, viewport] of Object.entries(sizes)) {
		for (const colorScheme of ['light', 'dark']) {
			const page = await open(browser, origin, { viewport, colorScheme });
			await pages(page, 'carol');
			await nav(page, 'People');
			await row(page, 'alice').waitFor();
			await seen(page, `team-people-${size}-${colorScheme}`);
			await row(page, 'bob').getByRole('link').click();
			await page.locator('h1', { hasText: 'bob' }).waitFor();
			await seen(page, `team-person-${size}-${colorScheme}`);
			if (size === 'phone' && colorScheme === 'dark') {
				await row(page, "Bob's editor").locator('button').click();
				await page.waitForSelector('text=It has ended.');
				await assert.rejects(his.callTool({ name: 'list_files', arguments: { pattern: '**' } }));
				await page.click('text=All people');
				await page.fill('#name', 'dora');
				await page.keyboard.press('Enter');
				link = await page.locator('section.card pre').innerText();
				await seen(page, 'team-invited');
			}
			assert.deepEqual(page.wrong, []);
			await page.context().close();
		}
	}
	const page = await open(browser, origin, { viewport: sizes.phone });
	await page.goto(link);
	await page.fill('#password', password);
	await page.fill('#again', password);
	await page.keyboard.press('Enter');
	await page.getByRole('heading', { name: 'What you allowed' }).waitFor();
	assert.deepEqual(page.wrong, []);
	await page.context().close();
});
await editor?.close();
await his?.close().catch(() => {}); // its access has ended
await finish(browser, loopback);
