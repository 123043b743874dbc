package platform.client

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import java.io.File
import java.io.IOException
import java.io.InputStream

/** Size from which a file is sent in parts, and that of a part. */
private const val PARTS_MIN_BYTES = 8 * 1024 * 1024
private const val PART_BYTES = 4 * 1024 * 1024
private const val PARTS_MAX = 10_000

/** Stored file. [uploaded] is its time. */
public class FileEntry(public val key: String, public val size: Long, public val uploaded: String)

/** Page of files, in byte order of the keys. It may be short before the last page, where a rule hides files. */
public class FilePage(public val items: List<FileEntry>, public val hasMore: Boolean, public val cursor: String?)

/** Files of one bucket. Errors: [PlatformException]; `IOException` for local files. */
public class Bucket internal constructor(private val transport: Transport, name: String) {
    private val path = "/api/storage" + pathOf(name)

    private fun at(key: String) = path + keyPathOf(key)

    /** Stores a file. From 8 MiB on it is sent in parts of 4 MiB. */
    public suspend fun upload(
        key: String,
        content: ByteArray,
        contentType: String = "application/octet-stream",
        metadata: Map<String, String> = emptyMap(),
    ): FileEntry = upload(key, content.inputStream(), contentType, metadata)

    /** Stores a file of this machine. */
    public suspend fun upload(
        key: String,
        content: File,
        contentType: String = "application/octet-stream",
        metadata: Map<String, String> = emptyMap(),
    ): FileEntry = withContext(Dispatchers.IO) { content.inputStream() }.use { upload(key, it, contentType, metadata) }

    /** Stores what a stream gives, which stays open. It holds at most 8 MiB of it in memory. */
    public suspend fun upload(
        key: String,
        content: InputStream,
        contentType: String = "application/octet-stream",
        metadata: Map<String, String> = emptyMap(),
    ): FileEntry {
        val head = content.part(PARTS_MIN_BYTES)
        return if (head.size < PARTS_MIN_BYTES) whole(key, head, contentType, metadata) else parts(key, head, content, contentType, metadata)
    }

    private suspend fun whole(key: String, content: ByteArray, contentType: String, metadata: Map<String, String>): FileEntry {
        val form = formOf(
            listOf(
                Part("key", null, "text/plain", key.toByteArray()),
                Part("metadata", null, "application/json", bytesOf(jsonOf(metadata))),
                Part("file", "file", contentType, content),
            ),
        )
        return entryOf(transport.json(Outgoing("POST", "$path/upload", body = form, isIdempotent = true)).asObject())
    }

    private suspend fun parts(key: String, head: ByteArray, rest: InputStream, contentType: String, metadata: Map<String, String>): FileEntry {
        val begin = jsonBody(mapOf("key" to key, "contentType" to contentType, "metadata" to metadata))
        val created = transport.json(Outgoing("POST", "$path/multipart/create", body = begin)).asObject()
        val place = mapOf("uploadId" to created.text("uploadId"), "key" to key)
        try {
            val sent = mutableListOf<JsonObject>()
            suspend fun send(piece: ByteArray) {
                if (sent.size == PARTS_MAX) throw PlatformException(413, "A file has at most $PARTS_MAX parts of $PART_BYTES bytes")
                val params = place + ("partNumber" to sent.size + 1)
                val body = Body("application/octet-stream", piece)
                sent += transport.json(Outgoing("POST", "$path/multipart/upload-part", params, body, isRetried = true)).asObject()
            }
            for (from in head.indices step PART_BYTES) send(head.copyOfRange(from, minOf(from + PART_BYTES, head.size)))
            while (true) {
                val piece = rest.part(PART_BYTES)
                if (piece.isEmpty()) break
                send(piece)
            }
            // It may be repeated: the server gives the same answer again.
            val done = jsonBody(place + ("parts" to sent))
            return entryOf(transport.json(Outgoing("POST", "$path/multipart/complete", body = done, isRetried = true)).asObject())
        } catch (problem: Throwable) {
            withContext(NonCancellable) { abort(place) }
            throw problem
        }
    }

    private suspend fun abort(place: Map<String, Any?>) {
        try {
            transport.json(Outgoing("POST", "$path/multipart/abort", body = jsonBody(place)))
        } catch (_: PlatformException) {
            // The server removes unfinished uploads after 24 hours.
        }
    }

    /** Returns the bytes of a file, or of its thumbnail in a declared size. Errors: 404. */
    public suspend fun download(key: String, thumb: String? = null): ByteArray =
        transport.send(Outgoing("GET", at(key), mapOf("thumb" to thumb))) { it.bytes() }

    /** Writes a file of the bucket to one of this machine, which is there only when it is whole. Errors: 404. */
    public suspend fun download(key: String, into: File) {
        val folder = into.absoluteFile.parentFile
        val fresh = withContext(Dispatchers.IO) { File.createTempFile(into.name.padEnd(3, '_'), ".new", folder) }
        try {
            val problem = transport.send(Outgoing("GET", at(key))) { response ->
                val buffer = ByteArray(64 * 1024)
                val source = response.body!!.byteStream()
                fresh.outputStream().use { target ->
                    while (true) {
                        val count = source.read(buffer)
                        if (count < 0) return@send null
                        // What goes wrong here is no failure of the network.
                        try {
                            target.write(buffer, 0, count)
                        } catch (problem: IOException) {
                            return@send problem
                        }
                    }
                }
                null
            }
            if (problem != null) throw problem
            withContext(Dispatchers.IO) { if (!fresh.renameTo(into)) throw IOException("Cannot write $into") }
        } finally {
            fresh.delete()
        }
    }

    /** Returns key, size, type and metadata of a file. Errors: 404. */
    public suspend fun metadata(key: String): JsonObject = transport.json(Outgoing("GET", "${at(key)}/metadata")).asObject()

    /** Returns the files that the caller may read; 100 by default, 1,000 at most. */
    public suspend fun list(prefix: String = "", limit: Int? = null, cursor: String? = null): FilePage {
        val params = mapOf("prefix" to prefix.ifEmpty { null }, "limit" to limit, "cursor" to cursor)
        val answer = transport.json(Outgoing("GET", path, params)).asObject()
        val hasMore = (answer["truncated"] as? JsonPrimitive)?.booleanOrNull ?: false
        return FilePage(answer.objects("objects").map(::entryOf), hasMore, answer.text("cursor"))
    }

    /** Returns an address with which anyone can read the file, for so many seconds. */
    public suspend fun signedUrl(key: String, expiresInSeconds: Int = 3600): String {
        val body = jsonBody(mapOf("key" to key, "expiresIn" to expiresInSeconds))
        return transport.json(Outgoing("POST", "$path/signed-url", body = body)).asObject().text("url").orEmpty()
    }

    /** Deletes a file. Errors: 404. */
    public suspend fun delete(key: String) {
        transport.json(Outgoing("DELETE", at(key)))
    }

    private fun entryOf(answer: JsonObject) = FileEntry(answer.text("key").orEmpty(), answer.long("size"), answer.text("uploaded").orEmpty())
}

/** Reads so many bytes, fewer only at the end. */
private suspend fun InputStream.part(size: Int): ByteArray = withContext(Dispatchers.IO) {
    var content = ByteArray(minOf(size, 64 * 1024))
    var filled = 0
    while (filled < size) {
        if (filled == content.size) content = content.copyOf(minOf(size, content.size * 2))
        val count = read(content, filled, content.size - filled)
        if (count < 0) break
        filled += count
    }
    content.copyOf(filled)
}
