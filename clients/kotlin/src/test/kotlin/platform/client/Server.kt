package platform.client

import java.io.File
import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.TimeUnit

/** Root of the repository, found from the folder in which Maven runs. */
internal val ROOT: File = generateSequence(File("").absoluteFile) { it.parentFile }.first { File(it, "src/main.ts").exists() }

internal const val KEY = "kotlin-test-key-0123456789abcdefghijkl"
private const val START_SECONDS = 30L

/** Server process on a folder of its own: PLATFORM_EXECUTABLE, else the sources. [start] keeps its port and its data. */
internal class Server(config: String) : AutoCloseable {
    private val folder = Files.createTempDirectory("platform-kotlin").toFile()
    private var port = "0"
    private lateinit var process: Process
    var url = ""
        private set

    init {
        File(folder, "platform.config.ts").writeText(config)
        start()
    }

    fun start() {
        val executable = System.getenv("PLATFORM_EXECUTABLE").orEmpty()
        val program = if (executable != "") listOf(ROOT.resolve(executable).path)
        else listOf("$ROOT/node_modules/.bin/bun", "--no-env-file", "$ROOT/src/main.ts")
        val builder = ProcessBuilder(program + listOf("start", "--config", "platform.config.ts", "--data", "data", "--port", port))
        builder.directory(folder).redirectError(File(folder, "log"))
        builder.environment() += mapOf("PLATFORM_SERVICE_KEY" to KEY, "NODE_ENV" to "production")
        process = builder.start()
        val started = process
        Thread { if (!started.waitFor(START_SECONDS, TimeUnit.SECONDS) && url == "") started.destroyForcibly() }.apply { isDaemon = true }.start()
        val lines = process.inputStream.bufferedReader()
        url = generateSequence(lines::readLine).firstNotNullOfOrNull { Regex("^platform listening on (http://\\S+?)/?$").find(it)?.groupValues?.get(1) }
            ?: error(File(folder, "log").readText())
        port = url.substringAfterLast(":")
    }

    fun kill() {
        process.destroyForcibly().waitFor()
    }

    /** Returns the client of a new user. */
    suspend fun user(): PlatformClient = PlatformClient(url).also { it.auth.signUp("${UUID.randomUUID()}@example.com", PASSWORD) }

    fun root(): PlatformClient = PlatformClient(url, KEY)

    override fun close() {
        kill()
        folder.deleteRecursively()
    }
}

internal const val PASSWORD = "correct horse battery"

internal val CONFIG = """
import { defineConfig, Refusal } from "platform";
const all = { read: true, insert: (auth) => auth !== null, update: (auth) => auth !== null, delete: (auth) => auth !== null, upsert: "matching" };
const many = { requests: 1_000_000, window: 60 };
export default defineConfig({
  auth: { anonymous: true, mfa: { totp: true }, session: { accessTokenTtl: 2 } },
  rateLimits: { auth: many, signin: many, signup: many },
  storage: { buckets: { files: { access: { read: true, write: (auth) => auth !== null, delete: (auth) => auth !== null } } } },
  rooms: {
    board: {
      access: { join: (auth, roomId) => auth !== null && !roomId.startsWith("closed") },
      actions: {
        write(room, player, { line }) {
          if (line === "") throw new Refusal("A line has a text");
          room.setShared((state) => ({ ...state, last: { line, by: player.userId }, lines: [...(state.lines ?? []), line] }));
          room.setPlayer(player.userId, (state) => ({ count: (state.count ?? 0) + 1 }));
          room.save();
          return line.length;
        },
        clear(room) { room.setShared((state) => ({ ...state, last: null })); },
        say: (room, _player, { text }) => room.send("said", { text }),
        kick: (room, _player, { userId }) => room.kick(userId),
      },
    },
  },
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true },
            genre: { type: "string", enum: ["Crime", "Comedy"] },
            year: { type: "integer" },
            at: { type: "datetime" },
            day: { type: "date" },
            place: { type: "geo" },
            likes: { type: "integer", default: 0 },
            code: { type: "string", unique: true },
            extra: { type: "json" },
            directorId: { type: "string", references: "people" },
            cover: { type: "file", bucket: "files" },
          },
          fts: ["title"],
          access: all,
        },
        people: { schema: { name: { type: "string", required: true }, friends: { type: "references", references: "people" } }, access: all },
        notes: { access: { ...all, read: (auth) => auth !== null && [["ownerId", "==", auth.id]] } },
        members: { schema: { userId: { type: "string", unique: true } }, access: {} },
        secrets: { schema: { text: { type: "string" } }, access: { ...all, read: (auth, _r, { table }) => auth !== null && table("members").where("userId", "==", auth.id).exists() } },
      },
    },
  },
});
"""
