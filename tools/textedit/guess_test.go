package textedit

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// A sample is text of one language in one encoding. With want "UTF-8" it cannot be told apart soundly, so that bytes are
// shown as bytes.
type sample struct {
	language string
	encoding encoding.Encoding
	want     string
	text     string
}

func samples() []sample {
	const (
		chinese = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。人人有资格享有本宣言所载的一切权利和自由，不分种族、肤色、性别、语言、宗教、政治或其他见解、国籍或社会出身、财产、出生或其他身分等任何区别。"
		taiwan  = "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。人人有資格享有本宣言所載的一切權利和自由，不分種族、膚色、性別、語言、宗教、政治或其他見解、國籍或社會出身、財產、出生或其他身分等任何區別。"
		korean1 = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다. 모든 사람은 인종, 피부색, 성, 언어, 종교 등 어떠한 이유로도 차별받지 아니한다."
		japan   = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。ファイルが見つかりません。パスを確認してください。"
		russian = "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства. Каждый человек должен обладать всеми правами и всеми свободами."
		ukraine = "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і повинні діяти у відношенні один до одного в дусі братерства."
		french  = "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité. Déjà à l'été, où ça naît."
		german  = "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen. Größe, Maß, Übung, möglich, während, Äpfel."
		spanish = "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y conciencia, deben comportarse fraternalmente los unos con los otros. ¿Año? ¡Sí, señor! Qué más."
		portug  = "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de consciência, devem agir uns para com os outros em espírito de fraternidade. Não há opções, avô, avó, informações."
		swedish = "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete och bör handla gentemot varandra i en anda av broderskap. På två år."
		danish  = "Alle mennesker er født frie og lige i værdighed og rettigheder. De er udstyret med fornuft og samvittighed, og de bør handle mod hverandre i en broderskabets ånd. Også små børn."
		polish  = "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa. Błąd, źródło, książka, więcej."
		czech   = "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají spolu jednat v duchu bratrství. Příliš žluťoučký kůň úpěl ďábelské ódy."
		magyar  = "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek. Árvíztűrő tükörfúrógép."
		romania = "Toate fiinţele umane se nasc libere şi egale în demnitate şi în drepturi. Ele sunt înzestrate cu raţiune şi conştiinţă şi trebuie să se comporte unele faţă de altele în spiritul fraternităţii."
		turkish = "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler. Değişiklik, çalışma, görüş."
		greek   = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης."
		hebrew  = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחוה."
		arabic  = "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء."
		thai    = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ"
	)
	return []sample{
		{"Chinese", simplifiedchinese.GBK, "GBK", chinese},
		{"Chinese", traditionalchinese.Big5, "Big5", taiwan},
		{"Korean", korean.EUCKR, "EUC-KR", korean1},
		{"Japanese", japanese.ShiftJIS, "Shift_JIS", japan},
		{"Japanese", japanese.EUCJP, "EUC-JP", japan},
		{"Russian", charmap.Windows1251, "Windows-1251", russian},
		{"Russian", charmap.KOI8R, "KOI8-R", russian},
		{"Ukrainian", charmap.Windows1251, "Windows-1251", ukraine},
		{"French", charmap.Windows1252, "Windows-1252", french},
		{"German", charmap.Windows1252, "Windows-1252", german},
		{"Spanish", charmap.Windows1252, "Windows-1252", spanish},
		{"Portuguese", charmap.Windows1252, "Windows-1252", portug},
		{"Swedish", charmap.Windows1252, "Windows-1252", swedish},
		{"Danish", charmap.Windows1252, "Windows-1252", danish},
		{"Russian", charmap.CodePage866, "UTF-8", russian},
		{"Russian", charmap.ISO8859_5, "UTF-8", russian},
		{"Polish", charmap.Windows1250, "UTF-8", polish},
		{"Czech", charmap.Windows1250, "UTF-8", czech},
		{"Hungarian", charmap.Windows1250, "UTF-8", magyar},
		{"Romanian", charmap.Windows1250, "UTF-8", romania},
		{"Turkish", charmap.Windows1254, "UTF-8", turkish},
		{"Greek", charmap.Windows1253, "UTF-8", greek},
		{"Hebrew", charmap.Windows1255, "UTF-8", hebrew},
		{"Arabic", charmap.Windows1256, "UTF-8", arabic},
		{"Thai", charmap.Windows874, "UTF-8", thai},
		{"French", charmap.CodePage850, "UTF-8", french},
		{"German", charmap.CodePage437, "UTF-8", german},
		{"French", charmap.Macintosh, "UTF-8", french},
		{"Spanish", charmap.Macintosh, "UTF-8", spanish},
	}
}

func encoded(t *testing.T, e encoding.Encoding, text string) []byte {
	t.Helper()
	raw, err := encoding.ReplaceUnsupported(e.NewEncoder()).Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestDetectLegacy(t *testing.T) {
	for _, s := range samples() {
		e, err := Detect(encoded(t, s.encoding, "# read me\n"+s.text+"\nplain = 1\n"))
		if err != nil || e.String() != s.want {
			t.Errorf("%s in %v: %v, %v; want %s", s.language, s.encoding, e, err, s.want)
		}
	}
}

// A short piece may be too little to tell, but it must not be told wrongly: it is then shown right all the same, or stays
// bytes. The figures are logged.
func TestDetectShortPieces(t *testing.T) {
	for _, s := range samples() {
		runes := []rune(s.text)
		pieces, known, wrong := 0, 0, 0
		for _, size := range []int{3, 5, 8, 12, 20, 40, 80} {
			for at := 0; at+size <= len(runes); at += 2 {
				text := string(runes[at : at+size])
				raw := encoded(t, s.encoding, text)
				e, err := Detect(raw)
				if err != nil {
					t.Fatalf("%s %q: %v", s.language, text, err)
				}
				pieces++
				shown, bad := e.Decode(raw)
				want, _ := s.encoding.NewDecoder().Bytes(raw)
				switch {
				case e == Encoding{}:
				case bad == 0 && shown == string(want):
					known++
				default:
					wrong++
					if wrong <= 5 {
						t.Logf("%s in %v: %q as %v is %q", s.language, s.encoding, text, e, shown)
					}
				}
			}
		}
		t.Logf("%s in %v: %d pieces, %d known, %d wrong", s.language, s.encoding, pieces, known, wrong)
		if wrong*100 > pieces {
			t.Errorf("%s in %v: %d of %d pieces are named wrongly, want at most 1 %%", s.language, s.encoding, wrong, pieces)
		}
	}
}

func TestDetect(t *testing.T) {
	long := strings.Repeat("a", detectHead-1)
	cases := []struct{ name, head, want string }{
		{"empty", "", "UTF-8"},
		{"ASCII", "a\n", "UTF-8"},
		{"UTF-8", "naïve 日本", "UTF-8"},
		{"UTF-8 with a mark", "\xef\xbb\xbfa", "UTF-8"},
		{"UTF-16 little", "\xff\xfea\x00", "UTF-16 LE"},
		{"UTF-16 big", "\xfe\xff\x00a", "UTF-16 BE"},
		{"UTF-32 little", "\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32 LE"},
		{"UTF-32 big", "\x00\x00\xfe\xff\x00\x00\x00a", "UTF-32 BE"},
		{"as many good characters as bad bytes", "\xe9 é", "UTF-8"},
		{"one bad byte", "caf\xe9", "UTF-8"},
		{"two letters of Latin-1", "caf\xe9 na\xefve\n", "Windows-1252"},
		{"quotes of Windows", "he said \x93hi\x94\n", "Windows-1252"},
		{"rubbish", "ab\xff\xfe\x80cd\x81", "UTF-8"},
		{"a character over the end of the head", long + "é", "UTF-8"},
		{"what is behind the head does not count", long + "a\xff\xff\xff", "UTF-8"},
		{"a bad byte at the end of the head", long + "\xff\xff", "UTF-8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e, err := Detect([]byte(c.head))
			if err != nil || e.String() != c.want {
				t.Errorf("%v, %v; want %s", e, err, c.want)
			}
		})
	}
}
