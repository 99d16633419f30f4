package markdown

import "strings"

type languageKind int

const (
	kindPlain languageKind = iota
	kindCode
	kindData   // key: value
	kindMarkup // tags
	kindDiff
)

// language is what the scanner knows of one.
type language struct {
	kind         languageKind
	words        map[string]Mark
	line         []string    // what begins a comment to the end of the line
	block        [][2]string // comments over several lines
	multi        []string    // delimiters of strings over several lines
	quotes       string      // delimiters of strings within a line
	sigil        bool        // $name is a variable
	fold         bool        // keywords in any case
	hashAnywhere bool        // # begins a comment after code too
}

func wordSet(keywords, types, values string) map[string]Mark {
	m := map[string]Mark{}
	for _, l := range []struct {
		words string
		mark  Mark
	}{{keywords, Keyword}, {types, Type}, {values, Number}} {
		for w := range strings.FieldsSeq(l.words) {
			m[w] = l.mark
		}
	}
	return m
}

// newLanguage returns what is known under a name or file extension, nil for nothing.
func newLanguage(name string) *language {
	cBlock := [][2]string{{"/*", "*/"}}
	slashes := []string{"//"}
	switch name {
	case "go", "golang":
		return &language{kind: kindCode, line: slashes, block: cBlock, multi: []string{"`"}, quotes: `"'`, words: wordSet(
			"break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
			"any bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
			"true false nil iota")}
	case "js", "javascript", "jsx", "ts", "typescript", "tsx", "mjs", "cjs":
		return &language{kind: kindCode, line: slashes, block: cBlock, multi: []string{"`"}, quotes: `"'`, words: wordSet(
			"abstract as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in instanceof interface keyof let namespace new of private protected public readonly return satisfies set static super switch this throw try type typeof var void while with yield",
			"any bigint boolean never number object string symbol unknown Array Map Promise Record Set",
			"true false null undefined NaN")}
	case "py", "python", "python3":
		return &language{kind: kindCode, line: []string{"#"}, hashAnywhere: true, multi: []string{`"""`, "'''"}, quotes: `"'`, words: wordSet(
			"and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
			"bool bytes dict float int list object set str tuple type",
			"True False None self cls")}
	case "sh", "bash", "shell", "zsh", "console", "shell-session":
		return &language{kind: kindCode, line: []string{"#"}, quotes: `"'`, sigil: true, words: wordSet(
			"case do done elif else esac export fi for function if in local return select set shift then until while",
			"cat cd chmod cp curl docker echo exit git go grep kill ls make mkdir mv npm npx pip python rm sed sudo tar test touch",
			"true false")}
	case "json", "jsonc", "json5":
		return &language{kind: kindData, line: slashes, block: cBlock, quotes: `"`, words: wordSet("", "", "true false null")}
	case "yaml", "yml", "toml", "ini", "conf", "properties", "env":
		return &language{kind: kindData, line: []string{"#", ";"}, hashAnywhere: true, quotes: `"'`, words: wordSet("", "", "true false null yes no on off")}
	default:
		return moreLanguages(name)
	}
}

func moreLanguages(name string) *language {
	cBlock := [][2]string{{"/*", "*/"}}
	slashes := []string{"//"}
	switch name {
	case "rs", "rust":
		return &language{kind: kindCode, line: slashes, block: cBlock, quotes: `"`, words: wordSet(
			"as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self static struct super trait type unsafe use where while",
			"bool char f32 f64 i8 i16 i32 i64 i128 isize str String u8 u16 u32 u64 u128 usize Box Option Result Self Vec",
			"true false None Some Ok Err")}
	case "c", "h", "cpp", "c++", "cc", "hpp", "cxx", "objc", "m":
		return &language{kind: kindCode, line: slashes, block: cBlock, quotes: `"'`, words: wordSet(
			"auto break case catch class const constexpr continue default define delete do else endif enum explicit extern for friend goto if ifdef ifndef include inline namespace new noexcept operator private protected public return sizeof static struct switch template this throw try typedef typename union using virtual volatile while",
			"bool char double float int int8_t int16_t int32_t int64_t long short signed size_t ssize_t uint8_t uint16_t uint32_t uint64_t unsigned void",
			"true false NULL nullptr")}
	case "java", "kotlin", "kt", "scala", "cs", "csharp", "c#", "swift", "dart", "groovy":
		return &language{kind: kindCode, line: slashes, block: cBlock, multi: []string{`"""`}, quotes: `"'`, words: wordSet(
			"abstract as async await break case catch class companion const continue data def default do else enum extends extension final finally fun func for foreach get guard if implements import in init interface internal is let lateinit namespace new object open operator override package private protected protocol public readonly record return sealed self set static struct super suspend switch this throw throws try typealias using val var virtual void when where while yield",
			"bool boolean byte char decimal double float int long short string Any Boolean Byte Char Double Float Int List Long Map Object Set Short String Unit",
			"true false null nil")}
	case "rb", "ruby", "elixir", "ex", "exs":
		return &language{kind: kindCode, line: []string{"#"}, hashAnywhere: true, quotes: `"'`, words: wordSet(
			"alias and begin break case class def defmodule do else elsif end ensure fn for if in include loop module next not or private raise redo require rescue retry return self super then unless until use when while yield",
			"Array Hash Integer String Symbol", "true false nil")}
	case "php":
		return &language{kind: kindCode, line: []string{"//", "#"}, block: cBlock, quotes: `"'`, sigil: true, words: wordSet(
			"abstract as break case catch class const continue default do echo else elseif extends final finally fn for foreach function global if implements include interface match namespace new private protected public readonly require return static switch throw trait try use var while yield",
			"array bool float int mixed object string void", "true false null")}
	case "sql", "postgres", "postgresql", "mysql", "sqlite", "plpgsql":
		return &language{kind: kindCode, fold: true, line: []string{"--"}, block: cBlock, quotes: `'"`, words: wordSet(
			"add all alter and any as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists explain foreign from full group having if in index inner insert into is join key left like limit not offset on or order outer primary references returning right rollback select set table then transaction trigger union unique update using values view when where with",
			"bigint boolean char date decimal float int integer json jsonb numeric real serial smallint text timestamp uuid varchar", "true false null")}
	case "lua":
		return &language{kind: kindCode, line: []string{"--"}, block: [][2]string{{"--[[", "]]"}}, quotes: `"'`, words: wordSet(
			"and break do else elseif end for function goto if in local not or repeat return then until while", "", "true false nil")}
	case "html", "xml", "svg", "vue", "svelte", "xhtml":
		return &language{kind: kindMarkup, block: [][2]string{{"<!--", "-->"}}, quotes: `"`}
	case "css", "scss", "less":
		return &language{kind: kindData, block: cBlock, quotes: `"'`}
	case "dockerfile", "docker", "makefile", "make", "mk", "hcl", "terraform", "tf", "nix":
		return &language{kind: kindCode, line: []string{"#"}, quotes: `"'`, sigil: true, fold: true, words: wordSet(
			"add arg cmd copy data define else endef endif entrypoint env expose export from healthcheck ifdef ifeq ifneq include label module output provider resource run shell user variable volume workdir", "", "true false null")}
	case "diff", "patch":
		return &language{kind: kindDiff}
	}
	return nil
}
