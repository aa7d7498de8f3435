// What the page of serve shows of changes and activity, pauses, rights and hand-overs, in Chromium: on phone and desk,
// light and dark, by keyboard, without script; and nothing that a file, a command or a client is called runs there.
//
// usage: node console.mjs --url URL [--page URL] [--out DIR]
//
// The URL is that of a server without a sign-in; --page is what `codehand page` printed. Each check is a line, `ok NAME`
// or `FAIL NAME: why`. Pictures go to DIR.
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';

import { accessible, check, client, finish, launch, open, shoot, tab } from './browser.mjs';

const { values: flags } = parseArgs({ options: { url: { type: 'string' }, page: { type: 'string' }, out: { type: 'string' } } });
const origin = flags.url, browser = await launch();
const sizes = { phone: { width: 360, height: 640 }, desk: { width: 1280, height: 800 } };
const quiet = (page) => assert.deepEqual(page.wrong, []);

const usual = await client(origin);
const write = async (file_path, content) => {
	const result = await usual.tool('write_file', { file_path, content });
	assert(!result.isError, result.content[0].text);
};
const read = async (file_path) => (await usual.tool('read_file', { file_path })).content[0].text;
const shell = (command, more) => usual.tool('run_shell', { command, description: 'Try', ...more });
const row = (page, what) => page.locator('tr', { hasText: what }).first();

/** walk presses Tab until the link or button that the selector means has the focus, and Enter: that leads to a page. */
async function walk(page, what, title) {
	await tab(page, what);
	await page.keyboard.press('Enter');
	await page.locator('h1', { hasText: title }).waitFor();
}

/** sessionOf makes a session of its own, and returns its client and its name on the page. */
async function sessionOf(name, file) {
	const one = await client(origin, name), result = await one.tool('write_file', { file_path: file, content: 'one\n' });
	assert(!result.isError, result.content[0].text);
	const text = await (await fetch(`${origin}/changes`)).text();
	return { ...one, name: text.match(/changes\?session=([0-9a-f]{8})/)[1] }; // the newest stands first
}

/** held begins a call, and returns its answer once the call has said that it waits for the end of a pause. */
async function held(one, name, args) {
	let answer;
	await new Promise((done, fail) => {
		const heard = (text) => text.includes('paused by a person') && done();
		answer = one.rpc('tools/call', { name, arguments: args, _meta: { progressToken: 'p' } }, undefined, heard);
		answer.then((r) => fail(new Error(`it did not wait: ${r.content[0].text}`)), fail);
	});
	return { answer };
}

for (const [size, viewport] of Object.entries(sizes)) {
	for (const colorScheme of ['light', 'dark']) {
		await check(`${size}, ${colorScheme}: a change is found, read and taken back by keyboard`, async () => {
			const what = `${size}-${colorScheme}`, file = `walk-${what}.txt`;
			await write(file, 'one\nthe old word\nthree\n');
			await write(file, 'one\nthe new word\nthree\n');
			const page = await open(browser, origin, { viewport, colorScheme });
			await page.goto(`${origin}/`);
			await walk(page, 'nav a[href$=changes]', /^Changes$/);
			await accessible(page);
			await shoot(page, flags.out, `changes-${what}`);
			const shown = await row(page, file).locator('a', { hasText: file }).evaluate((a) => a.getBoundingClientRect().right);
			assert(shown <= viewport.width, 'the name of the file is beyond the edge');
			const one = await row(page, file).locator('a').first().getAttribute('href');
			await walk(page, `a[href$="${one}"]`, /^Change$/);
			assert.deepEqual(await page.locator('mark').allInnerTexts(), ['old', 'new']);
			await accessible(page);
			await shoot(page, flags.out, `change-${what}`);
			await walk(page, 'form[action$="console/undo"] button', /^Undo$/);
			await page.waitForSelector('text=Taken back.');
			await accessible(page);
			assert.match(await read(file), /the old word/);
			quiet(page);
			await page.context().close();
		});

		await check(`${size}, ${colorScheme}: what connects a client is found and copied by keyboard`, async () => {
			const page = await open(browser, origin, { viewport, colorScheme });
			await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
			await page.goto(`${origin}/`);
			await walk(page, 'nav a[href$=connect]', /^Connect$/);
			await tab(page, 'summary');
			await page.keyboard.press('Enter');
			await accessible(page);
			await shoot(page, flags.out, `connect-${size}-${colorScheme}`);
			const entry = page.locator('details[open] .copied').last();
			await entry.locator('button').focus();
			await page.keyboard.press('Enter');
			await entry.locator('text=Copied').waitFor();
			const copied = await page.evaluate(() => navigator.clipboard.readText());
			assert.equal(JSON.parse(copied).mcpServers.codehand.url, `${origin}/mcp`);
			assert((await page.content()).length < 80_000, 'the page is heavy');
			quiet(page);
			await page.context().close();
		});

		await check(`${size}, ${colorScheme}: a command is seen at once, and stopped by keyboard`, async () => {
			const what = `${size}-${colorScheme}`, page = await open(browser, origin, { viewport, colorScheme });
			await shell('echo before; exit 3');
			await page.goto(`${origin}/activity`);
			await row(page, 'exit 3').waitFor();
			await accessible(page);
			const began = shell(`sleep 600 # ${what}`, { run_in_background: true });
			await row(page, `sleep 600 # ${what}`).waitFor({ timeout: 10_000 }); // without a reload
			await began;
			await accessible(page);
			await shoot(page, flags.out, `activity-${what}`);
			await walk(page, 'button.danger', /^Activity$/);
			await page.waitForSelector('text=The command was stopped.');
			await page.waitForSelector('text=No command runs.');
			await accessible(page);
			quiet(page);
			await page.context().close();
		});

		await check(`${size}, ${colorScheme}: everything is paused and goes on by keyboard`, async () => {
			const what = `${size}-${colorScheme}`, page = await open(browser, origin, { viewport, colorScheme });
			await page.goto(`${origin}/`);
			await tab(page, 'form[action$="console/pause"] button:not([name])');
			await page.keyboard.press('Enter');
			await page.waitForSelector('text=Calls that had begun go on to their end.');
			const { answer } = await held(usual, 'write_file', { file_path: `paused-${what}.txt`, content: 'one\n' });
			await accessible(page);
			await shoot(page, flags.out, `paused-${what}`);
			for (const path of ['activity', 'changes']) {
				await page.goto(`${origin}/${path}`);
				await page.waitForSelector('form.paused >> text=are paused');
				await accessible(page);
			}
			await tab(page, 'form.paused button');
			await page.keyboard.press('Enter');
			await page.waitForSelector('text=Calls run again.');
			assert(!(await answer).isError);
			assert.match(await read(`paused-${what}.txt`), /one/);
			await accessible(page);
			quiet(page);
			await page.context().close();
		});

		await check(`${size}, ${colorScheme}: the mode and a rule of a session are set by keyboard`, async () => {
			const what = `${size}-${colorScheme}`, one = await sessionOf('rights', `rights-${what}.txt`);
			const again = () => one.tool('write_file', { file_path: `more-${what}.txt`, content: 'one\n' });
			const page = await open(browser, origin, { viewport, colorScheme });
			await page.goto(`${origin}/activity`);
			await walk(page, `a[href$="session=${one.name}"]`, /^Activity$/);
			await page.locator('h2', { hasText: 'Rights' }).waitFor();
			await accessible(page);
			await tab(page, 'select[name=mode]');
			await page.keyboard.type('plan');
			await tab(page, 'select[name=mode] + button');
			await page.keyboard.press('Enter');
			await page.waitForSelector('text=The mode holds from the next call on.');
			await accessible(page);
			await shoot(page, flags.out, `rights-${what}`);
			assert.match((await again()).content[0].text, /^PLAN_MODE/);
			await tab(page, 'select[name=mode]');
			await page.keyboard.type('as the settings');
			await tab(page, 'select[name=mode] + button');
			await page.keyboard.press('Enter');
			await page.waitForSelector('text=It is that of the settings');
			assert(!(await again()).isError);
			await tab(page, 'input[name=rule]');
			await page.keyboard.type(`Edit(more-${what}.txt)`);
			await page.keyboard.press('Enter'); // the strictest list stands first
			await page.waitForSelector('text=The rule holds from the next call on.');
			await accessible(page);
			await shoot(page, flags.out, `rules-${what}`);
			assert.match((await again()).content[0].text, /^PERMISSION_DENIED.*set for this session on the page/);
			await walk(page, 'td button.danger', /^Activity$/);
			await page.waitForSelector('text=The rule does not hold any more');
			await page.waitForSelector('text=This session has no rules of its own.');
			assert(!(await again()).isError);
			quiet(page);
			await page.context().close();
		});

		await check(`${size}, ${colorScheme}: what a session hands over is found and copied by keyboard`, async () => {
			const what = `${size}-${colorScheme}`, one = await sessionOf('handover', `over-${what}.txt`);
			const page = await open(browser, origin, { viewport, colorScheme });
			await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
			await page.goto(`${origin}/changes`);
			await walk(page, `a[href$="changes?session=${one.name}"]`, /^Changes$/);
			await walk(page, `a[href$="handover?session=${one.name}"]`, /^Hand-over$/);
			await accessible(page);
			await shoot(page, flags.out, `handover-${what}`);
			const shown = await page.locator('textarea').inputValue();
			assert.match(shown, new RegExp(`over-${what}\\.txt`));
			assert((await page.content()).length < 80_000, 'the page is heavy');
			await tab(page, '.copied button');
			await page.keyboard.press('Enter');
			await page.locator('text=Copied').waitFor();
			assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown);
			await walk(page, 'a[href$="whole=1"]', /^Hand-over$/);
			await accessible(page);
			quiet(page);
			await page.context().close();
		});
	}
}

await check('a session is taken back, newest first, as far as nobody changed its files since', async () => {
	const other = await client(origin, 'another'), file = 'session.txt';
	for (const content of ['one\n', 'two\n', 'three\n']) await other.tool('write_file', { file_path: file, content });
	await other.tool('write_file', { file_path: 'mine.txt', content: 'of the session\n' });
	const page = await open(browser, origin, { viewport: sizes.phone });
	await page.goto(`${origin}/changes`);
	await row(page, '+4 -2').locator('a').first().click(); // in the table of sessions
	await page.locator('td a', { hasText: file }).first().click();
	await page.click('text=Undo 3 changes of this file');
	await page.waitForSelector('text=3 changes were taken back.');
	assert.match(await read(file), /NOT_FOUND|no such/i);
	await shell('echo mine > mine.txt');
	await page.goto(`${origin}/changes`);
	await row(page, 'mine.txt').waitFor();
	await page.locator('tr', { hasText: 'mine.txt' }).nth(1).locator('a').first().click();
	await page.click('text=Undo this change');
	await page.waitForSelector('text=UNDO_CONFLICT');
	await accessible(page);
	await shoot(page, flags.out, 'conflict');
	assert.match(await read('mine.txt'), /mine/);
	quiet(page);
	await page.context().close();
});

await check('one part of a change is taken back, and what a person wrote elsewhere stays', async () => {
	const lines = [...Array(40).keys()].map((i) => `line ${i}`), of = (...more) => [...more, ''].join('\n');
	const changed = lines.with(5, 'five').with(30, 'thirty'), file = 'parts.txt';
	await write(file, of(...lines));
	await write(file, of(...changed));
	await shell(`sed -i '1i mine' ${file}`);
	for (const javaScriptEnabled of [true, false]) {
		const page = await open(browser, origin, { viewport: sizes.phone, javaScriptEnabled });
		await page.goto(`${origin}/changes`);
		await page.locator('tr', { hasText: `${file} update +2 -2` }).locator('a').first().click();
		await page.locator('pre button').nth(javaScriptEnabled ? 1 : 0).waitFor();
		if (javaScriptEnabled) {
			await accessible(page);
			await shoot(page, flags.out, 'parts');
		}
		await page.locator('pre button').nth(javaScriptEnabled ? 1 : 0).click();
		await page.waitForSelector('text=Taken back.');
		quiet(page);
		await page.context().close();
		const text = await read(file);
		assert.match(text, /mine/);
		assert.match(text, /line 30/);
		assert.match(text, javaScriptEnabled ? /five/ : /line 5/);
	}
});

await check('1,000 calls are seen as they are made, and leave 200 rows at most', async () => {
	const page = await open(browser, origin, { viewport: sizes.desk });
	await page.goto(`${origin}/activity`);
	for (let i = 0; i < 100; i++) {
		await Promise.all([...Array(10).keys()].map((j) => usual.tool('read_file', { file_path: `none-${i}-${j}.txt` })));
	}
	await write('last.txt', 'one\n');
	const began = performance.now();
	await row(page, 'last.txt').waitFor({ timeout: 10_000 }); // without a reload
	console.log(`# the last of 1,001 calls shows ${Math.round(performance.now() - began)} ms after its answer`);
	assert(await page.locator('tbody tr').count() <= 200);
	quiet(page);
	await page.context().close();
});

await check('what a page weighs, and when it is painted', async () => {
	for (const path of ['', 'activity', 'changes', 'connect']) {
		const page = await open(browser, origin, { viewport: sizes.phone });
		await page.goto(`${origin}/${path}`);
		await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
		const [bytes, paint] = await page.evaluate(() => [
			[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
				.reduce((sum, e) => sum + e.transferSize, 0),
			performance.getEntriesByName('first-contentful-paint')[0].startTime,
		]);
		console.log(`# /${path}: ${(bytes / 1000).toFixed(1)} kB with all that it loads, painted after ${Math.round(paint)} ms`);
		assert(bytes < 80_000, 'the page is heavy');
		quiet(page);
		await page.context().close();
	}
});

await check('without script', async () => {
	await write('plain.txt', 'one\n');
	await shell('sleep 600 # plain', { run_in_background: true });
	const page = await open(browser, origin, { viewport: sizes.phone, javaScriptEnabled: false });
	await page.goto(`${origin}/activity`);
	await row(page, 'sleep 600 # plain').locator('button').click();
	await page.waitForSelector('text=The command was stopped.');
	await page.click('nav >> text=Changes');
	await row(page, 'plain.txt').locator('a').first().click();
	await page.click('text=Undo this change');
	await page.waitForSelector('text=Taken back.');
	assert.match(await read('plain.txt'), /NOT_FOUND|no such/i);
	await page.click('nav >> text=Approvals');
	await page.click('text=Pause everything');
	await page.waitForSelector('text=Calls that had begun go on to their end.');
	const one = await held(usual, 'write_file', { file_path: 'plain.txt', content: 'two\n' });
	await page.click('form.paused button');
	await page.waitForSelector('text=Calls run again.');
	assert(!(await one.answer).isError);
	await shell('sleep 600 # paused', { run_in_background: true });
	await page.click('text=Pause and stop commands');
	await page.waitForSelector('text=Paused, and the commands that ran were stopped.');
	await page.click('form.paused button');
	await page.click('nav >> text=Activity');
	await page.waitForSelector('text=No command runs.');
	const other = await sessionOf('plain', 'plainly.txt');
	await page.goto(`${origin}/activity?session=${other.name}`);
	await page.selectOption('select[name=mode]', 'plan');
	await page.click('text=Set mode');
	await page.waitForSelector('text=The mode holds from the next call on.');
	assert.match((await other.tool('write_file', { file_path: 'more.txt', content: 'x' })).content[0].text, /^PLAN_MODE/);
	await page.selectOption('select[name=mode]', '');
	await page.click('text=Set mode');
	await page.selectOption('select[name=list]', 'ask');
	await page.fill('input[name=rule]', 'Edit(');
	await page.click('text=Set rule');
	await page.waitForSelector('text=want Tool or Tool(what)');
	await page.goBack();
	await page.fill('input[name=rule]', 'Edit(more.txt)');
	await page.selectOption('select[name=list]', 'deny');
	await page.click('text=Set rule');
	await page.waitForSelector('text=set here by local');
	assert.match((await other.tool('write_file', { file_path: 'more.txt', content: 'x' })).content[0].text, /^PERMISSION_DENIED/);
	await page.click('td button.danger');
	await page.waitForSelector('text=The rule does not hold any more');
	await page.goto(`${origin}/handover?session=${other.name}`);
	assert.match(await page.locator('textarea').inputValue(), /plainly\.txt/);
	quiet(page);
	await page.context().close();
});

await check('what files, commands and clients are called is text, however long', async () => {
	const evil = `<img src=x onerror=window.hurt=1><script>window.hurt=1<\\script>"onload="window.hurt=1`, bidi = '\u202eevil';
	const hostile = await client(origin, `<script>window.hurt=1</script>${bidi}`), long = '<b>x</b>'.repeat(1 << 17); // 1 MB
	const done = async (name, args) => {
		const result = await hostile.tool(name, args);
		assert(!result.isError, result.content[0].text.slice(0, 300));
	};
	await done('write_file', { file_path: `${evil}.txt`, content: `${evil}\n${bidi}\n` });
	await done('write_file', { file_path: 'long.txt', content: `${long}\n${evil}` });
	await done('run_shell', { command: `true '${evil}' ${bidi}; sleep 600`, description: evil, run_in_background: true });
	for (const [size, viewport] of Object.entries(sizes)) {
		const page = await open(browser, origin, { viewport });
		for (const path of ['/activity', '/changes']) {
			await page.goto(`${origin}${path}`);
			await page.waitForSelector('text=onerror=window.hurt=1');
			await accessible(page);
			await shoot(page, flags.out, `hostile${path.replace('/', '-')}-${size}`);
			assert(!(await page.content()).includes('\u202e'), 'a bidi character is in the page');
		}
		for (const name of ['onerror', 'long.txt']) {
			await page.goto(`${origin}/changes`);
			await row(page, name).locator('a').first().click();
			await page.waitForSelector('pre');
			await accessible(page);
			await shoot(page, flags.out, `hostile-${name}-${size}`);
			assert((await page.content()).length < 80_000, 'the page is heavy');
		}
		assert.equal(await page.evaluate(() => window.hurt), undefined);
		quiet(page);
		await page.context().close();
	}
});

if (flags.page) {
	await check('the address of codehand page opens it once', async () => {
		const at = new URL(flags.page), page = await open(browser, at.origin, { viewport: sizes.desk });
		await page.goto(flags.page);
		await page.waitForSelector('text=Nothing waits for your approval.');
		assert.equal(page.url(), `${at.origin}/`, 'the key stays in the address');
		await accessible(page);
		await page.click('nav >> text=Changes');
		await row(page, 'long.txt').waitFor(); // of the same user
		quiet(page);
		const other = await open(browser, at.origin, { viewport: sizes.desk });
		await other.goto(flags.page);
		await other.waitForSelector('text=Open the address that codehand page printed.');
		await other.context().close();
		await page.context().close();
	});
}

await finish(browser);
