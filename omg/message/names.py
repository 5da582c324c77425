"""
What a secret is called in many languages, and the words that stand behind such a name and are none.

Not here: what a secret looks like (looks.py), and where it stands. One rule: a name is in lower case, and of a
language that inflects it the stem.
"""

from __future__ import annotations

import re


def _names(listed: str) -> tuple[str, ...]:
    return tuple(" ".join(name.split()) for name in listed.split(","))


# several words are to be expected
PHRASES = _names(
    """
    passphrase, pass phrase, pass-phrase, seed phrase, recovery phrase, mnemonic phrase,
    passphrasen, phrase secrète, phrase de passe, frase de contraseña, wachtwoordzin
    """
)

# words of everyday speech as well
WEAK = _names("clave, parola, schlüssel, pass, psk, lösen, geslo, 암호, 비번, رمز")

# of many, the stem: the ending follows (lösenordet, hasłem, şifresi)
PASSWORDS = (
    *_names(
        """
        password, passwd, passcode, pass code, passwrd, puk, tunnusluku, geheimzahl, пин-код, пинкод, wpa2 key, wpa key, wpa3 key, wi-fi key,
        wifi key, wlan key, network key, netzwerkschlüssel, wlan-schlüssel, pwd, pw, pin, passkey,
        passwort, kennwort, paßwort, zugangscode, wachtwoord, wagwoord, lösenord, passord, adgangskode,
        kodeord,
        salasana, lykilorð, parool, slaptažod, contraseña, contrasen\u0303a, contrasena, contrasenya, pasahitza,
        mot de passe, mdp, senha, palavra-passe, palavra passe, parola d'ordine, parola d’ordine,
        parola chiave,
        kata sandi, kata laluan, nenosiri, cyfrinair, fjalëkalim, lozink, zaporka, hasł, heslo, hesla,
        heslem, jelsz, şifre, sifre,
        contrasinal, pasvorto, pasfhocal, adgangsord, aðgangsorð, құпиясөз, нууц үг, პაროლი, գաղտնաբառ,
        پاس ورڈ, પાસવર્ડ, ਪਾਸਵਰਡ, ಪಾಸ್ವರ್ಡ್, പാസ്വേഡ്, මුරපදය, የይለፍ ቃል, ពាក្យសម្ងាត់, ລະຫັດຜ່ານ, စကားဝှက်,
        พาสเวิร์ด, পাসওয়ার্ড,
        парол, лозинк, кодовое слово, κωδικ, συνθηματικ, mật khẩu, mật mã,
        كلمة المرور, كلمة مرور, كلمة السر, كلمه السر, الرقم السري, رمز عبور, رمز ورود, گذرواژه, סיסמה, סיסמא,
        סיסמת,
        密码, 密碼, 口令, パスワード, パスコード, パスフレーズ, 暗証番号, 合言葉, 비밀번호, 패스워드,
        पासवर्ड, पासवर्ड, কূটশব্দ, পাসওয়ার্ড, கடவுச்சொல், రహస్యపదం, รหัสผ่าน
        """
    ),
    *PHRASES,
    *WEAK,
)

KEY_NAMES = _names(
    """
    key, token, secret, credential, authorization, apikey, jwt, hmac, bearer, salt,
    zugangsschlüssel, api-schlüssel, geheimnis, llave, clé, chiave, chave, klucz, ключ, токен, секрет,
    密钥, 密鑰, 令牌, 秘钥, トークン, キー, 토큰, مفتاح
    """
)

SECRET_NAMES = frozenset((*PASSWORDS, *KEY_NAMES))

STAND_IN = re.compile(
    r"(?:example|dummy|placeholder|null|none|nil|true|false|undefined|required|optional|string|text|secret"
    r"|passwords?\d{0,4}|tokens?|keys?|changed|unchanged|updated|reset|protected|expired|incorrect|invalid|wrong|missing"
    r"|empty|hidden|redacted|stored|saved|correct|needed|here|there|what|that|this|something|nothing|same|still"
    r"|also|only|just|important|weak|strong|long|short|managers?|field|and|with|from|have|will|when|where|which"
    r"|change[-_]?me|change[-_]?it|they|your|str|void|int|bool|bytes|any|object|number|char|varchar|files|easy|hard)$",
    re.IGNORECASE,
)

# Words of talk about passwords, and small words that a passphrase does without.
PROSE_WORDS = frozenset(
    """
    a about above again easy hard remember guess files systemd compat all already always an and any are as ask at be because been before below but by can change
    changed characters check click combination contact default did digits do does enter every expected expired fields for forgot
    forgotten from get had has have he her here his how i if in into is it its keep letters like link long login longer
    made manager me minimum must my need needs never new no not numbers of off on only or our out page per please policy
    prompt protected provided required reset rules same screen see sent set she should show so some stored strength
    strong than that the their them then there these they this to too type unchanged under until up use used user
    username using dummy empty example expired hidden important incorrect invalid key keys missing needed none nothing
    null optional placeholder redacted saved secret something still string text token tokens true false undefined
    updated wrong password passwords vault was we weak were what when where which who will with would you your
    als am an auf aus bei bitte das dem den der die du ein eine er es für habe hat ich im in ist liegt man mein meine mit
    nicht noch nur oder per sein sich sie siehe steht und unter vergessen von war wie wird wir zu zum
    al con como cuando de del el en es esta está la las le les lo los mi no para pero por que se si sin su un una ver y yo
    au avec ce dans des du elle est et il je mon ne ou pas pour qui sur une voir à da do em esqueci foi minha na não o os
    um в и из к на не он она по с у это я забыл где как мой
    """.split()
)
