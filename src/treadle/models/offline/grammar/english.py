"""Ordinary English that the planner leans on: function words, common verbs, small groups of like-minded words.

Data only. Nothing here knows any tool: groups say which everyday words ask for the same kind of thing, so that "how
many" finds a tool that speaks of quantities. Read by `words`.
"""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(text.split())


FUNCTION_WORDS = word_set(
    """a an the this that these those some any each every of for in on at to from with without by into onto about as
    than and or but nor if then so also too please pls plz thx just only both either not no yes i me my mine we us our
    ours you your yours he him his she her it its they them their who whom whose what when where why how which
    is are was were be been being am do does did doing has had having can could will would shall should may
    might must there here let s up out off over under between versus vs per via much very
    really exactly right now currently presently again still ok okay hi hello hey thanks thank well actually
    maybe perhaps like such etc within during throughout since until while because whether same one ones everything
    anything something thing things else other another more most less fewer least across along through against
    together respectively next last past altogether equal equals bit kind sort lot way ahead"""
)

# Words that are verbs first: they may choose a tool but never name a thing.
VERBS = word_set(
    """tell give show find get know see need want buy sell ship cost check list compare compute calculate convert
    look work out take make fulfil fulfill cover fill serve satisfy supply deliver live help use run think say
    mean add subtract multiply divide put bring come go keep hold stand start begin end stop wonder explain
    describe read write speak have having want wants got gotten going handle reconcile match differ differs
    differ agree agrees amounts evaluate figure determine provide fetch retrieve display print return happen
    exist exists pay paid spend owe contain remain wrote written borrowed borrow lent lend own owns owned
    worked hired available left remaining search lookup locate like love hate enough sufficient many few
    several worth asked ask asking learn understand plan report reports create open file raise delete remove
    repeat continue undo redo meant sent bought sold gave given taken brought
    count update change modify edit cancel close resolve send email notify schedule reserve assign submit request
    register rename forecast looks look"""
)

# Verbs that change the world. A tool whose name opens with one is called only when the question commands it.
CHANGES = (
    word_set("create open file raise make add log register submit new insert start post write"),
    word_set("delete remove erase drop destroy discard purge"),
    word_set("update change modify edit set rename adjust"),
    word_set("cancel abort revoke withdraw stop"),
    word_set("close resolve finish complete end"),
    word_set("send email mail notify message forward text"),
    word_set("book reserve schedule request order purchase buy"),
    word_set("assign give reassign transfer move hand"),
    word_set("approve accept confirm"),
    word_set("reject deny decline refuse"),
    word_set("pay"),
    word_set("refund"),
    word_set("charge"),
    word_set("restart reboot deploy execute run launch install turn switch shut"),
    word_set("renew extend prolong"),
    word_set("borrow checkout"),
    word_set("lend"),
    word_set("reset restore"),
    word_set("enable activate unlock unblock"),
    word_set("disable deactivate lock block ban"),
    word_set("acknowledge archive"),
    word_set("remind alert warn nudge ping"),
    word_set("invite uninvite"),
    word_set("publish unpublish share upload"),
    word_set("hire fire promote demote"),
    word_set("subscribe unsubscribe enrol enroll"),
    word_set("escalate dispatch trigger"),
    word_set("merge swap sell"),
    word_set("deposit"),
    word_set("pause resume"),
)

# Verbs by which a tool only tells something. A tool that is called by another verb than these, and described by it, may
# change something: "remind: Reminds a client."
TELLING_VERBS = word_set(
    """tell list find get count search check calculate compute convert show return translate estimate look read fetch
    compare query evaluate explain describe summarize summarise summarizes track predict forecast measure multiply add
    subtract divide sum rank sort filter validate verify test analyze analyse parse extract classify detect identify
    recommend suggest answer ask determine define browse view inspect monitor plan match split format encode decode hash
    round solve generate draw plot simulate locate retrieve load lookup drill trace preview examine diagnose work figure
    see give say name map score weigh price quote cost report state express spell pronounce reverse repeat
    echo average total combine join concatenate negate square raise power mod greet roll flip pick choose sample
    scan collect gather select enumerate provide display output resolve expand shorten reduce geocode route navigate
    annotate group cluster aggregate profile audit review assess judge interpret think reason recall remember guess
    download crawl scrape wait sleep help use need want have make do run obtain derive approximate interpolate integrate
    differentiate factorize factorise simplify tokenize lemmatize visualize visualise"""
)

# Those of them that are done to things as well: nothing but a description tells what `collect_sample` is.
HANDLING_VERBS = word_set(
    "audit collect combine draw drill expand extract flip gather join load make pick power recall reduce review roll "
    "run sample scan select split use"
)

# Verbs of `CHANGES` by which a tool may only tell, or work out, something: "creates a summary", "adds a number".
MAKING_VERBS = word_set(
    "create open file raise make add log new insert start post write update set adjust execute run launch turn merge "
    "swap end finish complete close resolve text message hand give charge restore reset"
)

# Names of things, such as departments, that have no singular.
PLURAL_ONLY = word_set(
    "sales operations logistics resources communications analytics economics physics mathematics goods savings "
    "earnings services electronics athletics ethics relations affairs pilates darts billiards aerobics tapas series "
    "species jeans trousers glasses scissors headphones chess mercedes molasses lens atlas gas bus texas paris"
)

# What undoing something is called: an order to undo that is none to the tool that does it.
UNDOING = word_set(
    """cancellation cancellations cancelation deletion deletions removal removals revocation withdrawal termination
    closure rejection refusal deactivation suspension reversal undoing"""
)

# Verbs that leave it to the noun after them what is done.
LIGHT_VERBS = word_set("place make put issue perform")

# Verbs that say no more than "let me know".
PLAIN_VERBS = word_set("get fetch check retrieve read look lookup show tell give run do find return see")

GROUPS = tuple(
    frozenset(line.split())
    for line in """
    many quantity count stock inventory hand left remaining remain have enough sufficient supply ship pieces qty
    price cost charge fee expensive cheap pay rate priced buy
    total sum value worth overall altogether aggregate valuation cost
    compare comparison difference differ versus vs deviation discrepancy reconcile against gap variance agree match
    list which all available enumerate overview catalogue catalog exist offer every
    time clock hour oclock
    date day today calendar
    weather forecast temperature hot cold warm degrees climate
    weather forecast rain rainy raining umbrella climate conditions
    weather forecast snow snowing climate conditions
    weather forecast wind windy climate conditions
    weather forecast sunny sun climate conditions
    weather forecast cloudy clouds climate conditions
    vacation holiday leave pto off absence
    balance left remaining remain available
    employee person staff colleague worker member people
    convert exchange conversion currency turn
    ticket issue bug incident case
    author writer wrote written write
    borrow borrowed loan lend lent borrower checked due
    search find look lookup locate seek about
    status state progress
    calculate compute evaluate arithmetic math mathematical calculation expression
    add plus sum
    subtract minus difference
    multiply times product
    divide divided quotient
    city place location town where
    manager boss supervisor
    availability available free lent
    query fetch retrieve total sum
    phone telephone number
    email mail
    salary pay wage earn earns
    distance far
    definition define meaning mean
    translate translation
    """.strip().splitlines()
)

PLACE_WORDS = word_set(
    "city location place country town region destination origin airport station zone timezone tz warehouse site "
    "room building"
)
PERSON_WORDS = word_set(
    "employee person user author customer assignee owner manager member patron borrower client contact recipient "
    "colleague requester reader to name pupil student patient guest visitor tenant player participant attendee "
    "passenger applicant candidate"
)
TITLE_WORDS = word_set("title book song film movie album article work")
TEXT_WORDS = word_set(
    "query text message topic subject body content keyword keywords search phrase description summary term question "
    "reason note comment"
)
EXPRESSION_WORDS = word_set("expression formula equation expr arithmetic calculation")
COUNT_WORDS = word_set("quantity count number amount units qty size")
LIMIT_WORDS = word_set("limit top max maximum rows results first")
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
FINAL_WORDS = word_set("done finish finished final answer conclude complete")
