// The MCP Inspector's web page in Chromium: a person connects, signs in on our pages, lists the tools and calls one; the
// server is killed, and the grant is revoked.
//
// usage: node inspector.mjs --inspector URL --password P [--out DIR]
//
// It says RESTART and REVOKE, and goes on when it reads a line. Each check is a line, `ok NAME` or `FAIL NAME: why`.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { check, finish, launch, shoot } from './browser.mjs';

const { values: flags } = parseArgs({
	options: { inspector: { type: 'string' }, password: { type: 'string' }, out: { type: 'string' } },
});
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const answer = async (line) => {
	console.log(line);
	await lines.next();
};
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
const page = await context.newPage();
page.setDefaultTimeout(15_000);
const home = new URL(flags.inspector).origin;
const visited = [];
page.on('framenavigated', (frame) => { if (frame === page.mainFrame()) visited.push(frame.url()); });

const ours = () => visited.filter((url) => url.includes('/signin/'));
const connected = () => page.getByText('Connected', { exact: true }).waitFor();
/** connect turns the switch of the server, which leads to our pages or to the list of tools. */
const connect = () => page.getByRole('switch', { name: /^Connect or disconnect/ }).click({ force: true });
const call = async () => {
	await page.getByText('Tools', { exact: true }).first().click();
	await page.getByRole('button', { name: /list_files/ }).click();
	await page.getByLabel(/^pattern/).first().fill('*.txt');
	await page.getByRole('button', { name: 'Execute Tool' }).click();
	await page.getByText('kept.txt').first().waitFor();
};

await check('signs in', async () => {
	await page.goto(flags.inspector);
	await connect();
	await page.fill('input[type=password]', flags.password);
	await page.press('input[type=password]', 'Enter');
	await page.click('button[value=approve]');
	await page.waitForURL((url) => url.origin === home && url.pathname === '/');
	await connected();
});
await check('lists the tools and calls one', async () => {
	await page.getByText('Tools', { exact: true }).first().click();
	await page.getByText(/^Tools \([1-9]\d*\)$/).waitFor();
	for (const tool of ['read_file', 'edit_file', 'run_shell']) await page.getByRole('button', { name: new RegExp(tool) }).waitFor();
	await call();
	await shoot(page, flags.out, 'inspector');
});
await check('survives a restart', async () => {
	const before = ours().length;
	await answer('RESTART');
	await page.goto(flags.inspector);
	await connect();
	await connected();
	await call();
	assert.equal(ours().length, before, 'a person was asked again');
});
await check('is refused after a revocation', async () => {
	await answer('REVOKE');
	await page.goto(flags.inspector);
	await connect();
	// Over plain http a person enters the password for each client (docs/signin.md).
	await page.fill('input[type=password]', flags.password);
	assert.equal(await page.locator('button[value=approve]').count(), 0, 'the cookie alone is enough');
	await page.press('input[type=password]', 'Enter');
	await page.click('button[value=refuse]');
	await page.waitForURL((url) => url.origin === home);
	await page.goto(flags.inspector);
	assert.equal(await page.getByText('Connected', { exact: true }).count(), 0);
});
await finish(browser);
