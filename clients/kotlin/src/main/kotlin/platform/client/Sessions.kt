package platform.client

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import java.io.File
import java.io.IOException
import java.security.GeneralSecurityException
import javax.crypto.Cipher
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec
import kotlin.io.encoding.Base64

/**
 * Place where a client keeps its session between runs. The text that it is given holds a refresh token: whoever reads it is the user.
 * One client at a time uses a place.
 */
public interface SessionStorage {
    /** Returns what was saved last, null if nothing is there. */
    public suspend fun load(): String?

    /** Replaces what is there. It is called after each replacement of the tokens, and has to be on disk when it returns. */
    public suspend fun save(session: String)

    /** Removes what is there. */
    public suspend fun clear()
}

/** Forgets the session when the program ends: the default. */
public class MemorySessionStorage : SessionStorage {
    @Volatile
    private var session: String? = null

    override suspend fun load(): String? = session

    override suspend fun save(session: String) {
        this.session = session
    }

    override suspend fun clear() {
        session = null
    }
}

/** Keeps the session in a file that its owner alone can read, and that is replaced as a whole. */
public class FileSessionStorage(private val file: File) : SessionStorage {
    override suspend fun load(): String? = withContext(Dispatchers.IO) { if (file.exists()) file.readText() else null }

    override suspend fun save(session: String): Unit = withContext(Dispatchers.IO) {
        val folder = file.absoluteFile.parentFile
        folder.mkdirs()
        val fresh = File.createTempFile(file.name, ".new", folder)
        try {
            fresh.setReadable(false, false)
            fresh.setReadable(true, true)
            fresh.setWritable(false, false)
            fresh.setWritable(true, true)
            fresh.outputStream().use {
                it.write(session.toByteArray())
                it.fd.sync()
            }
            if (!fresh.renameTo(file)) throw IOException("Cannot replace $file")
        } finally {
            fresh.delete()
        }
    }

    override suspend fun clear(): Unit = withContext(Dispatchers.IO) {
        if (!file.delete() && file.exists()) throw IOException("Cannot delete $file")
    }
}

/**
 * Encrypts what another storage keeps, by AES-GCM with a key of yours, on Android one of its key store. What the key does not open is
 * as if nothing were there, so an app whose key was lost begins signed out.
 */
public class EncryptedSessionStorage(private val key: SecretKey, private val inner: SessionStorage) : SessionStorage {
    override suspend fun load(): String? {
        val sealed = inner.load() ?: return null
        return try {
            val bytes = Base64.decode(sealed)
            val cipher = Cipher.getInstance(CIPHER)
            cipher.init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(TAG_BITS, bytes, 0, NONCE_BYTES))
            String(cipher.doFinal(bytes, NONCE_BYTES, bytes.size - NONCE_BYTES), Charsets.UTF_8)
        } catch (_: GeneralSecurityException) {
            null
        } catch (_: IllegalArgumentException) {
            null
        }
    }

    override suspend fun save(session: String) {
        val cipher = Cipher.getInstance(CIPHER)
        // The key store makes the nonce, and refuses to be given one.
        cipher.init(Cipher.ENCRYPT_MODE, key)
        check(cipher.iv.size == NONCE_BYTES) { "The nonce must have $NONCE_BYTES bytes, got ${cipher.iv.size}" }
        inner.save(Base64.encode(cipher.iv + cipher.doFinal(session.toByteArray())))
    }

    override suspend fun clear(): Unit = inner.clear()

    private companion object {
        const val CIPHER = "AES/GCM/NoPadding"
        const val NONCE_BYTES = 12
        const val TAG_BITS = 128
    }
}
