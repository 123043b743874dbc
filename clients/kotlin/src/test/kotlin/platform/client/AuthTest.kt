package platform.client

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import okhttp3.OkHttpClient
import org.junit.jupiter.api.DisplayName
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.nio.ByteBuffer
import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger
import javax.crypto.KeyGenerator
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNotEquals
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** Sign-in, the session and where it is kept. */
internal class AuthTest : ServerTest() {
    private fun address() = "${UUID.randomUUID()}@example.com"

    /** Returns the code of an authenticator app (RFC 6238). */
    private fun codeOf(secret: String, counter: Long): String {
        val bits = secret.map { "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(it).toString(2).padStart(5, '0') }.joinToString("")
        val key = bits.chunked(8).filter { it.length == 8 }.map { it.toInt(2).toByte() }.toByteArray()
        val mac = Mac.getInstance("HmacSHA1").apply { init(SecretKeySpec(key, "HmacSHA1")) }
        val digest = mac.doFinal(ByteBuffer.allocate(8).putLong(counter).array())
        val number = ByteBuffer.wrap(digest, digest.last().toInt() and 15, 4).int and 0x7FFFFFFF
        return (number % 1_000_000).toString().padStart(6, '0')
    }

    @Test
    @DisplayName("[KT6] signing up, in and out, with a second factor too")
    fun signIn() = tested {
        val email = address()
        PlatformClient(server.url).use { client ->
            assertNull(client.auth.user)
            val user = client.auth.signUp(email, PASSWORD, displayName = "Ann", metadata = mapOf("likes" to "films"))
            assertEquals(listOf(email, "Ann", "user"), listOf(user.email, user.displayName, user.role))
            val factor = client.request("POST", "/api/auth/mfa/totp/enroll").asObject()
            val counter = System.currentTimeMillis() / 30_000
            val code = codeOf(factor.text("secret")!!, counter)
            client.request("POST", "/api/auth/mfa/totp/verify", body = mapOf("factorId" to factor["factorId"], "code" to code))
            client.auth.signOut()
            assertNull(client.auth.user)
            assertEquals("required", failing(401) { client.auth.signIn(email, PASSWORD) }.fields["code"]?.code)
            assertEquals(user.id, client.auth.signIn(email, PASSWORD, codeOf(factor.text("secret")!!, counter + 1)).id)
            assertTrue(client.auth.signInAnonymously().isAnonymous)
        }
    }

    /** Client of OkHttp that counts requests by their path. */
    private fun counting(counts: ConcurrentHashMap<String, AtomicInteger>) = OkHttpClient.Builder().addInterceptor { chain ->
        counts.getOrPut(chain.request().url.encodedPath) { AtomicInteger() }.incrementAndGet()
        chain.proceed(chain.request())
    }.build()

    @Test
    @DisplayName("[KT7] however many requests wait, tokens are replaced once, and a cancelled caller does not end that")
    fun refresh() = tested {
        val counts = ConcurrentHashMap<String, AtomicInteger>()
        val storage = MemorySessionStorage()
        PlatformClient(server.url, sessionStorage = storage).use { it.auth.signUp(address(), PASSWORD) }
        PlatformClient(server.url, sessionStorage = storage, httpClient = counting(counts)).use { client ->
            val notes = client.db("shared").table("notes")
            List(20) { async { notes.count() } }.awaitAll()
            assertEquals(1, counts.getValue("/api/auth/refresh").get())
        }
        val kept = storage.load()
        val sent = CompletableDeferred<Unit>()
        val slow = OkHttpClient.Builder().addInterceptor { chain ->
            chain.proceed(chain.request()).also {
                if (chain.request().url.encodedPath == "/api/auth/refresh") {
                    sent.complete(Unit)
                    Thread.sleep(300)
                }
            }
        }.build()
        PlatformClient(server.url, sessionStorage = storage, httpClient = slow).use { client ->
            val asking = launch { client.db("shared").table("notes").count() }
            sent.await()
            asking.cancelAndJoin()
            until { storage.load() != kept }
            assertEquals(0, client.db("shared").table("notes").count())
        }
    }

    @Test
    @DisplayName("[KT9] a session outlives the program in its storage, and ends there with it")
    fun storage(@TempDir folder: File) = tested {
        val file = File(folder, "deep/session")
        val id = PlatformClient(server.url, sessionStorage = FileSessionStorage(file)).use { it.auth.signUp(address(), PASSWORD).id }
        assertEquals("rw-------", java.nio.file.attribute.PosixFilePermissions.toString(Files.getPosixFilePermissions(file.toPath())))
        PlatformClient(server.url, sessionStorage = FileSessionStorage(file)).use { client ->
            assertNull(client.auth.user)
            assertEquals(id, client.auth.restore()?.id)
            assertEquals(0, client.db("shared").table("notes").count())
        }
        // Its tokens have been replaced, and the fresh ones are kept.
        val before = file.readText()
        PlatformClient(server.url, sessionStorage = FileSessionStorage(file)).use { client ->
            assertEquals(0, client.db("shared").table("notes").count())
            assertNotEquals(before, file.readText())
            client.auth.signOut()
        }
        assertFalse(file.exists())
        assertEquals(listOf<String>(), file.parentFile.list()!!.toList())
    }

    @Test
    @DisplayName("[KT9] tokens are sent to no other server, and what is unreadable is nobody's")
    fun otherServer() = tested {
        val storage = MemorySessionStorage()
        PlatformClient(server.url, sessionStorage = storage).use { it.auth.signUp(address(), PASSWORD) }
        assertNull(PlatformClient("http://127.0.0.1:1", sessionStorage = storage).use { it.auth.restore() })
        for (text in listOf("", "{}", "null", "nonsense")) {
            storage.save(text)
            assertNull(PlatformClient(server.url, sessionStorage = storage).use { it.auth.restore() })
        }
    }

    @Test
    @DisplayName("[KT9] an encrypted storage keeps no token in the clear, and opens with its key alone")
    fun encrypted() = tested {
        val key = KeyGenerator.getInstance("AES").generateKey()
        val inner = MemorySessionStorage()
        val storage = EncryptedSessionStorage(key, inner)
        assertNull(storage.load())
        storage.save("a refresh token")
        val sealed = inner.load()!!
        storage.save("a refresh token")
        assertNotEquals(sealed, inner.load())
        assertEquals("a refresh token", storage.load())
        assertFalse(String(kotlin.io.encoding.Base64.decode(sealed), Charsets.ISO_8859_1).contains("refresh"))
        assertNull(EncryptedSessionStorage(KeyGenerator.getInstance("AES").generateKey(), inner).load())
        for (text in listOf("", "AAAA", "not base64!", sealed.dropLast(8) + "AAAAAAAA")) {
            inner.save(text)
            assertNull(storage.load(), text)
        }
        storage.clear()
        assertNull(inner.load())
    }
}
