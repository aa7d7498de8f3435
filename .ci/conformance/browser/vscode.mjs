// VS Code in Chromium signs in: its own code for MCP and OAuth, as code-server's package brings it.
//
// usage: node vscode.mjs --editor URL --server URL --password P [--out DIR]
//
// The editor has the server in its user configuration, named codehand. Two things are played here, since they are not in
// that package: the page https://vscode.dev/redirect, which sends the browser on to the address in state, and code-server's
// proxy of loopback ports, to which its build of the editor sends the browser. Without state before the code the editor does
// not see the code.
//
// It says RESTART and REVOKE, and goes on when it reads a line. Each check is a line, `ok NAME` or `FAIL NAME: why`.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { check, finish, launch, shoot } from './browser.mjs';

const { values: flags } = parseArgs({
	options: { editor: { type: 'string' }, server: { type: 'string' }, password: { type: 'string' }, out: { type: 'string' } },
});
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const answer = async (line) => {
	console.log(line);
	await lines.next();
};
const browser = await launch(), approve = 'button[value=approve]';
// The editor shows only the lines of its log that fit.
const context = await browser.newContext({ viewport: { width: 1280, height: 2400 }, reducedMotion: 'reduce' });
const popups = [];
context.on('page', (p) => popups.push(p));
await context.route(/^https:/, (route) => {
	const { origin, pathname, searchParams: got } = new URL(route.request().url());
	if (origin + pathname !== 'https://vscode.dev/redirect') return route.abort();
	const to = new URL(decodeURIComponent(got.get('state')));
	for (const name of ['state', 'code']) to.searchParams.set(name, got.get(name));
	return route.fulfill({ status: 302, headers: { location: to.href } });
});
const forwarded = `/proxy/${new URL(flags.server).port}`;
await context.route((url) => url.origin === new URL(flags.editor).origin && url.pathname.startsWith(`${forwarded}/`), (route) => {
	const url = new URL(route.request().url());
	return route.fulfill({ status: 302, headers: { location: flags.server + url.pathname.slice(forwarded.length) + url.search } });
});
const page = await context.newPage();
popups.length = 0;
page.setDefaultTimeout(60_000);

const rows = page.locator('.quick-input-list .monaco-list-row');
/** lost fails, and says what the editor shows instead of what. */
const lost = async (what) => {
	await shoot(page, flags.out, 'vscode-lost');
	const shown = await page.locator('.quick-input-list .monaco-list-row, .monaco-dialog-box, .notification-list-item, .view-line').allInnerTexts();
	assert.fail(`${what}; the editor shows: ${shown.join(' / ').slice(-1500)}`);
};
/** again repeats what the editor may not be ready for, as long as it takes to start on a busy machine. */
const again = async (what, body) => {
	for (const ends = Date.now() + 90_000; Date.now() < ends;) {
		try {
			return await body();
		} catch {
			await page.keyboard.press('Escape');
		}
	}
	await lost(`no ${what}`);
};
/** choose opens the list of servers and chooses an action of ours. */
const choose = (action) => again(action, async () => {
	await page.keyboard.press('F1');
	const input = page.locator('.quick-input-box input');
	await input.fill('>MCP: List Servers', { timeout: 5_000 });
	await rows.filter({ hasText: 'MCP: List Servers' }).first().click({ timeout: 5_000 });
	await rows.filter({ hasText: /^codehand/ }).first().click({ timeout: 15_000 });
	await rows.filter({ hasText: action }).first().click({ timeout: 5_000 });
});
/** discovered waits until the editor's log says n times that it has our tools. */
const discovered = (n) => page.waitForFunction((n) => {
	const text = [...document.querySelectorAll('.view-line')].map((e) => e.textContent.replaceAll('\u00a0', ' ')).join('\n');
	return [...text.matchAll(/Discovered [1-9]\d* tools/g)].length >= n;
}, n);
/**
 * popup is the browser window that the editor opens when the action is chosen, after questions of its own: none, one or
 * two. While the editor itself starts, an action may do nothing: then it is chosen again.
 */
const popup = async (action) => {
	const allow = page.locator('.monaco-dialog-box').getByRole('button', { name: /^(Allow|Open)/ }).first();
	for (let tries = 0; tries < 3; tries++) {
		await choose(action);
		for (let i = 0; i < 20 && !popups.length; i++) await allow.click({ timeout: 1_000 }).catch(() => {});
		if (popups.length) return popups.shift();
	}
	return lost('no window');
};

await check('signs in', async () => {
	await page.goto(flags.editor + '/?ew=true');
	await page.waitForSelector('.monaco-workbench');
	const p = await popup('Start Server');
	await p.fill('input[type=password]', flags.password);
	await p.press('input[type=password]', 'Enter');
	await p.click(approve);
	await p.waitForURL(/\/callback\?/);
	await discovered(1);
	await shoot(page, flags.out, 'vscode');
	await p.close();
	popups.length = 0;
});
await check('survives a restart', async () => {
	await answer('RESTART');
	await choose('Restart Server');
	await discovered(2);
	assert.equal(popups.length, 0, 'a person was asked again');
});
await check('is refused after a revocation', async () => {
	await answer('REVOKE');
	const p = await popup('Restart Server');
	// Over plain http a person enters the password for each client (docs/signin.md).
	await p.waitForSelector('input[type=password]');
});
await finish(browser);
