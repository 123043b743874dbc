import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Argument, Command } from "@commander-js/extra-typings";
import * as platformModule from "../../index.ts";
import { systemClock } from "../../kernel/clock.ts";
import { codeOf, reasonOf } from "../../kernel/errors.ts";
import { AcmeFiles } from "../areas/tls/acme/files.ts";
import { issueCertificate } from "../areas/tls/acme/issue.ts";
import { orderOf } from "../areas/tls/acme/renewal-time.ts";
import { CertificateError, type CertificateFacts, factsOf } from "../areas/tls/certificate.ts";
import { HTTP_PORT_DEFAULT, type HttpPort, openHttpPort } from "../areas/tls/http-port.ts";
import { CERTIFICATE_JOB_COMMAND } from "../areas/tls/job/command.ts";
import { runCertificateJob } from "../areas/tls/job/job.ts";
import { filesSource } from "../areas/tls/source.ts";
import { loadConfig } from "../config/loading/load.ts";
import type { AcmeConfig, CertificateFiles } from "../config/types.ts";
import { TLS_HOST_DEFAULT } from "../http/listening/listener.ts";
import { CommandError } from "./errors.ts";
import { configOption, dataOption } from "./options.ts";
import { printAnswer } from "./output.ts";

export const certificateCommand = new Command("certificate")
  .description("Shows the server's certificate, or renews it at once")
  .addArgument(new Argument("[ACTION]", "What to do").choices(["show", "renew"] as const).default("show" as const))
  .addOption(configOption)
  .addOption(dataOption)
  .action(async (action, options) => {
    const { config } = await loadConfig(options.config, platformModule);
    const tls = config.server?.tls;
    if (tls === undefined) throw new CommandError("The config has no server.tls");
    const data = resolve(options.data);
    if (action === "show") {
      process.exitCode = await show(tls, data);
      return;
    }
    if (!("domains" in tls)) throw new CommandError("The certificate is in files, which others renew: server.tls.cert");
    if (!existsSync(data)) throw new CommandError(`There is no data directory at ${options.data}`);
    await printAnswer(describe(await renew(tls, data)));
  });

/** Renews the certificate now. Errors: the authority's message, in one line. */
async function renew(config: AcmeConfig, data: string): Promise<CertificateFacts> {
  const files = new AcmeFiles(data);
  const port = openChallengePort(config, files);
  try {
    return await issueCertificate(config, { files, clock: systemClock });
  } catch (cause) {
    if (!(cause instanceof CertificateError)) throw cause;
    throw new CommandError(`tls: the certificate could not be renewed: ${cause.message}`, { cause });
  } finally {
    await port?.stop();
  }
}

/** Opens the port that answers challenges; null: the port is in use, by the running server, which answers from the same directory. */
function openChallengePort(config: AcmeConfig, files: AcmeFiles): HttpPort | null {
  try {
    return openHttpPort({
      host: TLS_HOST_DEFAULT,
      port: config.challengePort ?? HTTP_PORT_DEFAULT,
      challenge: (token) => files.readChallenge(token),
      redirect: () => null,
    });
  } catch (cause) {
    if (codeOf(cause) === "EADDRINUSE") return null;
    throw new CommandError(reasonOf(cause), { cause });
  }
}

/** Prints the certificate. Exit code 1 where there is none, or the last renewal failed. */
async function show(tls: AcmeConfig | CertificateFiles, data: string): Promise<number> {
  const files = new AcmeFiles(data);
  const pair = "domains" in tls ? files.readCertificate() : filesSource(tls).read();
  const lines = [pair === null ? "There is no certificate yet" : describe(factsOf(pair))];
  const { order, problem, retryAt } = files.readState();
  const hasFailed = "domains" in tls && order === orderOf(tls) && problem !== null;
  if (hasFailed) lines.push(`The last renewal failed: ${problem}`);
  if (hasFailed && retryAt !== null) lines.push(`The server tries again at ${new Date(retryAt).toISOString()}`);
  await printAnswer(lines.join("\n"));
  return pair === null || hasFailed ? 1 : 0;
}

const describe = ({ names, validUntil }: CertificateFacts): string =>
  `${names.join(", ")}: valid until ${new Date(validUntil).toISOString()}`;

/** Obtains one certificate. The server starts this process; the job is on standard input. */
export const certificateJobCommand = new Command(CERTIFICATE_JOB_COMMAND)
  .description("Gets one certificate")
  .action(async () => {
    const job = JSON.parse(await Bun.stdin.text());
    try {
      await runCertificateJob(job, systemClock);
    } catch (cause) {
      if (cause instanceof CertificateError) throw new CommandError(cause.message, { cause });
      throw cause;
    }
  });
