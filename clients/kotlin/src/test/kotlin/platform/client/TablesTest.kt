package platform.client

import kotlinx.coroutines.flow.toList
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import okhttp3.OkHttpClient
import org.junit.jupiter.api.DisplayName
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.io.IOException
import java.io.InputStream
import java.util.UUID
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNull
import kotlin.test.assertTrue

@Serializable
internal data class Film(val id: String, val title: String, val year: Int? = null, val genre: String? = null)

@Serializable
internal data class FilmDraft(val title: String, val year: Int, val code: String)

/** Records and files. */
internal class TablesTest : ServerTest() {
    @Test
    @DisplayName("[KT11] records are of a class, written as maps or of a class, and changed atomically")
    fun records() = tested {
        server.user().use { client ->
            val films = client.db("shared").table("films", Film.serializer())
            val code = UUID.randomUUID().toString()
            val heat = films.insert(FilmDraft("Heat", 1995, code))
            assertEquals(Film(heat.id, "Heat", 1995), heat)
            assertEquals(1997, films.update(heat.id, mapOf("year" to increment(2), "genre" to "Crime")).year)
            assertEquals(heat.id, films.upsert(mapOf("title" to "Heat 2", "code" to code), conflictTarget = "code").id)
            failing(412) { films.update(heat.id, mapOf("year" to 1), onlyIf = condition("year", "==", 1995)) }
            failing(412) { films.delete(heat.id, onlyIf = condition("year", "==", 1995)) }
            assertNull(films.update(heat.id, mapOf("year" to deleteField())).year)
            val ids = List(3) { films.insert(mapOf("title" to "Many $code", "year" to it)).id }
            val many = films.where("title", "==", "Many $code")
            assertEquals(ids, many.sort("year").limit(2).records().toList().map { it.id })
            assertEquals(2, many.where(condition("year", "<", 2)).updateAll(mapOf("year" to 9)).succeeded)
            failing(400) { many.limit(1).deleteAll() }
            assertEquals(3, many.deleteAll().processed)
            assertNull(many.first())
            val odd = client.db("shared").table("people")
            val friend = odd.insert(mapOf("name" to "B"))
            val person = odd.insert(mapOf("name" to "A"))
            odd.update(person.text("id")!!, mapOf("friends" to add(friend.text("id")!!)))
            assertEquals("[\"${friend.text("id")}\"]", odd.get(person.text("id")!!)["friends"].toString())
            failing(500) { client.db("shared").table("people", Film.serializer()).get(person.text("id")!!) }
        }
    }

    @Test
    @DisplayName("[KT10] names of endpoints are no records")
    fun names() = tested {
        server.user().use { client ->
            val films = client.db("shared").table("films")
            for (id in listOf("count", "aggregate", "search", "none", "..")) failing(404) { films.get(id) }
        }
    }

    @Test
    @DisplayName("[KT12] files of a record go with it")
    fun recordFiles() = tested {
        server.user().use { client ->
            val films = client.db("shared").table("films")
            val file = RecordFile("co\"ver ü.txt", "cover".toByteArray(), "text/plain")
            val film = films.insert(mapOf("title" to "Filed"), mapOf("cover" to file))
            assertTrue(film["cover"] is JsonObject || film["cover"] is JsonPrimitive, film.toString())
            val changed = films.update(film.text("id")!!, mapOf("year" to 1), files = mapOf("cover" to RecordFile("b.txt", "b".toByteArray(), "text/plain")))
            assertFalse(film["cover"] == changed["cover"])
        }
    }

    /** Client of OkHttp that loses the first answer of each request, and notes the keys. */
    private fun losing(keys: MutableList<String?>) = OkHttpClient.Builder().addInterceptor { chain ->
        val seen = chain.request().url.encodedPath + chain.request().header("Idempotency-Key")
        val answer = chain.proceed(chain.request())
        if (seen in keys || "/auth/" in seen) answer.also { keys += seen }
        else {
            keys += seen
            answer.close()
            throw IOException("lost")
        }
    }.build()

    @Test
    @DisplayName("[KT4] writes of a user are done once, although their answers are lost; deletes and writes of nobody are sent once")
    fun lostAnswers() = tested {
        val keys = CopyOnWriteArrayList<String?>()
        PlatformClient(server.url, httpClient = losing(keys)).use { client ->
            client.auth.signUp("${UUID.randomUUID()}@example.com", PASSWORD)
            val films = client.db("shared").table("films")
            val title = UUID.randomUUID().toString()
            val film = films.insert(mapOf("title" to title))
            assertEquals(1, films.where("title", "==", title).count())
            assertEquals(2, films.batch(inserts = List(2) { mapOf("title" to "$title batch") }).inserted.size)
            assertEquals(2, films.where("title", "==", "$title batch").count())
            client.db("shared").transaction(listOf(mapOf("table" to "films", "action" to "insert", "data" to mapOf("title" to "$title t"))))
            assertEquals(1, films.where("title", "==", "$title t").count())
            assertEquals("network", failing(0) { films.delete(film.text("id")!!) }.code)
            assertEquals(0, films.where("title", "==", title).count())
            client.auth.signOut()
            val before = keys.size
            failing(0) { films.insert(mapOf("title" to title)) }
            assertEquals(1, keys.size - before)
        }
    }

    @Test
    @DisplayName("[KT3] an error has status, code, fields and the request's id")
    fun errors() = tested {
        server.user().use { client ->
            val error = failing(400) { client.db("shared").table("films").insert(mapOf("year" to "soon")) }
            assertEquals(setOf("title", "year"), error.fields.keys)
            assertEquals(listOf("invalid", "required"), listOf(error.code, error.fields["title"]?.code))
            assertTrue(!error.requestId.isNullOrEmpty())
        }
        PlatformClient("http://127.0.0.1:1").use { client -> assertEquals("network", failing(0) { client.auth.signIn("a@example.com", "b") }.code) }
    }

    @Test
    @DisplayName("[KT13] files go up whole or in parts, and come down as bytes or into a file that is whole")
    fun files(@TempDir folder: File) = tested {
        server.user().use { client ->
            val bucket = client.storage("files")
            val name = UUID.randomUUID().toString()
            bucket.upload("$name/small ü.txt", "small".toByteArray(), "text/plain", mapOf("by" to "ann"))
            assertEquals("small", String(bucket.download("$name/small ü.txt")))
            assertTrue("\"by\":\"ann\"" in bucket.metadata("$name/small ü.txt").toString())
            val large = Random(1).nextBytes(9 * 1024 * 1024)
            assertEquals(large.size.toLong(), bucket.upload("$name/large", large).size)
            val target = File(folder, "large")
            bucket.download("$name/large", target)
            assertContentEquals(large, target.readBytes())
            assertEquals(large.size.toLong(), bucket.upload("$name/copy", target).size)
            failing(404) { bucket.download("$name/none", File(folder, "none")) }
            assertEquals(listOf("large"), folder.list()!!.toList())
            val url = bucket.signedUrl("$name/small ü.txt")
            assertEquals("small", java.net.URL(url).readText())
            // A stream that breaks leaves nothing behind.
            val broken = object : InputStream() {
                var left = 10 * 1024 * 1024
                override fun read(): Int = if (left-- > 0) 1 else throw IOException("broken")
            }
            assertFailsWith<IOException> { bucket.upload("$name/broken", broken) }
            assertEquals(listOf("$name/copy", "$name/large", "$name/small ü.txt"), bucket.list(prefix = name).items.map { it.key })
            assertTrue(bucket.list(prefix = name, limit = 1).hasMore)
            bucket.delete("$name/copy")
            failing(404) { bucket.download("$name/copy") }
        }
    }

    @Test
    @DisplayName("[KT2] a service key passes the rules, and any request can be sent")
    fun serviceKey() = tested {
        server.root().use { root ->
            assertEquals("m", root.db("shared").table("members").insert(mapOf("id" to "m", "userId" to "m")).text("id"))
            assertEquals("true", root.request("GET", "/api/health").asObject()["ok"]?.toString() ?: "true")
        }
    }
}
