// Floor of HTTPS: a bare server with the same certificate that answers each request with the same bytes. Arguments: the folder of
// cert.pem and key.pem, and the file of the response.
const [folder = "", answerFile = ""] = process.argv.slice(2);
const answer = await Bun.file(answerFile).text();
const headers = { "content-type": "application/json" };
const { url } = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  tls: { cert: Bun.file(`${folder}/cert.pem`), key: Bun.file(`${folder}/key.pem`) },
  fetch: () => new Response(answer, { headers }),
});
process.stdout.write(`${url.origin}\n`);
